//! Exports all objects of a pipeline as a zip archive, streamed.
//!
//! Invariant: exports of an unchanged pipeline have equal bytes. A failure breaks the connection, so that no incomplete
//! archive looks complete.
//!
//! An export takes no lock. If objects change meanwhile, each is consistent, but tables may not match their sources; the
//! archive's manifest records that, and the first run after an import repairs it: an import adopts tags by checksum, and
//! compares the files of each table with those that its manifest names.

use parking_lot::Mutex;
use std::io::{self, Read, Write};
use std::mem;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use zip::write::{SimpleFileOptions, StreamWriter};
use zip::{CompressionMethod, DateTime, ZipWriter};

use super::marker;
use super::package::{
    ArchiveManifest, FORMAT, MANIFEST, PackedObject, Problems, check_size, entry_name, is_compressed, object_of,
};
use super::remove::refuse_unreachable;
use super::service::Pipelines;
use crate::domain::digest::hex;
use crate::domain::layout::{manifests_prefix, pipeline_prefix, unfinished_key};
use crate::domain::limits::{ARCHIVE_OBJECTS_MAX, LIST_PAGE_KEYS_MAX};
use crate::domain::name::Slug;
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::ports::ObjectStore;
use crate::ports::store::{Bucket, ObjectMeta, ObjectReader, StoreError, list_all};
use crate::web::failure::{acquire, from_store};
use crate::web::streams::{attachment, streamed};

/// Bytes read at a time; about as many are buffered.
const CHUNK_BYTES: usize = 64 << 10;
/// Size from which entries have 64-bit sizes.
const LARGE_BYTES: u64 = u32::MAX as u64 - (1 << 20);
/// Permissions of extracted files.
const MODE: u32 = 0o644;

/// `GET /api/p/{pipeline}/export`
pub(super) fn export(pipelines: &Pipelines, request: &mut Request) -> Result<Response, ApiError> {
    let slug = pipelines.store.existing(request, "pipeline")?;
    marker::refuse_unfinished(&pipelines.store, &slug)?;
    let permit = acquire(&pipelines.streams)?;
    let objects = list(&*pipelines.store, &slug)?;
    check_keys(&objects, &slug)?;
    let name = attachment(&format!("{slug}.zip"));
    let archive = Archive::new(pipelines.store.shared(), slug, objects);
    Ok(streamed(200, "application/zip", archive, None, permit).with_header("Content-Disposition", name))
}

fn list(store: &dyn ObjectStore, slug: &Slug) -> Result<Vec<(Bucket, ObjectMeta)>, ApiError> {
    let (prefix, mark) = (pipeline_prefix(slug), unfinished_key(slug));
    let mut objects = Vec::new();
    for bucket in Bucket::ALL {
        let mut after = None;
        loop {
            let page = store.list(bucket, &prefix, None, after.as_deref(), LIST_PAGE_KEYS_MAX).map_err(from_store)?;
            refuse_unreachable(store, bucket, &page.skipped)?;
            let own = page.objects.into_iter().filter(|object| object.key != mark);
            objects.extend(own.map(|object| (bucket, object)));
            if objects.len() > ARCHIVE_OBJECTS_MAX {
                let message =
                    format!("`{slug}` has more than {ARCHIVE_OBJECTS_MAX} objects; copy its prefixes instead");
                return Err(ApiError::new(ErrorCode::PayloadTooLarge, message));
            }
            match page.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
    }
    Ok(objects)
}

/// Rejects keys that an import of the archive would reject.
fn check_keys(objects: &[(Bucket, ObjectMeta)], slug: &Slug) -> Result<(), ApiError> {
    let prefix = pipeline_prefix(slug);
    let mut problems = Problems::default();
    for (bucket, object) in objects {
        let key = object.key.strip_prefix(&prefix).unwrap_or(&object.key);
        let name = entry_name(*bucket, key);
        let found = object_of(&name).map(drop).and_then(|()| check_size(&name, object.size));
        if let Err(why) = found {
            problems.add(&format!("{bucket}/{key}"), format!("{why}; move or delete the object, then export again"));
        }
    }
    problems.check()
}

/// Bytes of the archive that are written and not yet read.
#[derive(Clone, Default)]
struct Pending(Arc<Mutex<Vec<u8>>>);

impl Pending {
    fn take(&self) -> Vec<u8> {
        mem::take(&mut *self.0.lock())
    }
}

impl Write for Pending {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The object being packed.
struct Current {
    path: String,
    reader: ObjectReader,
    hasher: Sha256,
    read: u64,
}

/// An archive generated as it is read.
struct Archive {
    store: Arc<dyn ObjectStore>,
    slug: Slug,
    /// Manifests at the start, to be compared with those at the end.
    tables: Vec<ObjectMeta>,
    left: std::vec::IntoIter<(Bucket, ObjectMeta)>,
    current: Option<Current>,
    packed: Vec<PackedObject>,
    changed: bool,
    /// `None` once the archive is finished or has failed.
    zip: Option<ZipWriter<StreamWriter<Pending>>>,
    finished: bool,
    pending: Pending,
    chunk: Vec<u8>,
    /// Being read, from `at`.
    out: Vec<u8>,
    at: usize,
}

impl Archive {
    fn new(store: Arc<dyn ObjectStore>, slug: Slug, objects: Vec<(Bucket, ObjectMeta)>) -> Self {
        let pending = Pending::default();
        let manifests = manifests_prefix(&slug);
        let is_manifest = |bucket: Bucket, key: &str| bucket == Bucket::Pipelines && key.starts_with(&manifests);
        let tables = objects.iter().filter(|(bucket, object)| is_manifest(*bucket, &object.key));
        Self {
            tables: tables.map(|(_, object)| object.clone()).collect(),
            store,
            slug,
            left: objects.into_iter(),
            current: None,
            packed: Vec::new(),
            changed: false,
            zip: Some(ZipWriter::new_stream(pending.clone())),
            finished: false,
            pending,
            chunk: vec![0; CHUNK_BYTES],
            out: Vec::new(),
            at: 0,
        }
    }

    /// Packs the next chunk.
    fn step(&mut self, mut zip: ZipWriter<StreamWriter<Pending>>) -> io::Result<()> {
        match self.current.take() {
            Some(current) => self.pack(&mut zip, current)?,
            None => match self.left.next() {
                Some((bucket, object)) => self.begin(&mut zip, bucket, &object)?,
                None => return self.finish(zip),
            },
        }
        self.zip = Some(zip);
        Ok(())
    }

    fn begin(
        &mut self,
        zip: &mut ZipWriter<StreamWriter<Pending>>,
        bucket: Bucket,
        object: &ObjectMeta,
    ) -> io::Result<()> {
        let reader = match self.store.get(bucket, &object.key, None) {
            Err(StoreError::NotFound { .. }) => {
                self.changed = true;
                return Ok(());
            }
            reader => reader.map_err(io::Error::other)?,
        };
        let tags = object.etag.as_ref().zip(reader.meta.etag.as_ref());
        self.changed |= reader.meta.size != object.size || tags.is_some_and(|(listed, read)| listed != read);
        let prefix = pipeline_prefix(&self.slug);
        let path = entry_name(bucket, object.key.strip_prefix(&prefix).unwrap_or(&object.key));
        zip.start_file(path.as_str(), options(&path, reader.meta.size)).map_err(io::Error::other)?;
        self.current = Some(Current { path, reader, hasher: Sha256::new(), read: 0 });
        Ok(())
    }

    fn pack(&mut self, zip: &mut ZipWriter<StreamWriter<Pending>>, mut current: Current) -> io::Result<()> {
        let read = match current.reader.body.read(&mut self.chunk) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                self.current = Some(current);
                return Ok(());
            }
            read => read?,
        };
        if read > 0 {
            current.hasher.update(&self.chunk[..read]);
            current.read += read as u64;
            zip.write_all(&self.chunk[..read])?;
            self.current = Some(current);
            return Ok(());
        }
        let Current { path, hasher, read, .. } = current;
        self.packed.push(PackedObject { path, size: read, sha256: hex(&hasher.finalize()) });
        Ok(())
    }

    fn finish(&mut self, mut zip: ZipWriter<StreamWriter<Pending>>) -> io::Result<()> {
        let manifests = manifests_prefix(&self.slug);
        let after = list_all(&*self.store, Bucket::Pipelines, &manifests).map_err(io::Error::other)?;
        let manifest = ArchiveManifest {
            format: FORMAT,
            slug: self.slug.to_string(),
            changed_during_export: self.changed || after != self.tables,
            objects: mem::take(&mut self.packed),
        };
        let json = serde_json::to_vec(&manifest)?;
        zip.start_file(MANIFEST, options(MANIFEST, json.len() as u64)).map_err(io::Error::other)?;
        zip.write_all(&json)?;
        zip.finish().map_err(io::Error::other)?;
        self.finished = true;
        Ok(())
    }
}

fn options(path: &str, size: u64) -> SimpleFileOptions {
    let method = if is_compressed(path) { CompressionMethod::Stored } else { CompressionMethod::Deflated };
    SimpleFileOptions::default()
        .compression_method(method)
        .last_modified_time(DateTime::default())
        .unix_permissions(MODE)
        .large_file(size >= LARGE_BYTES)
}

impl Read for Archive {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        while self.at == self.out.len() {
            // Taken, so that a failed step isn't repeated.
            match self.zip.take() {
                Some(zip) => self.step(zip)?,
                None if self.finished => return Ok(0),
                None => return Err(io::Error::other("the archive has already failed")),
            }
            (self.out, self.at) = (self.pending.take(), 0);
        }
        let bytes = (self.out.len() - self.at).min(out.len());
        out[..bytes].copy_from_slice(&self.out[self.at..self.at + bytes]);
        self.at += bytes;
        Ok(bytes)
    }
}
