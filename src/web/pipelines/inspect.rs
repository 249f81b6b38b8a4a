//! Inspects a complete archive before any of it is imported.
//!
//! Invariant: an inspected archive was inflated completely once: sizes, checksums and its manifest are correct, and every
//! entry is an object that may be written.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;

use flate2::Crc;
use flate2::bufread::DeflateDecoder;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::entries::{self, ArchiveEntry, CompressionMethod};
use super::package::{ArchiveManifest, CONFIG, FORMAT, MANIFEST, Problems, check_size, object_of};
use crate::domain::digest::hex;
use crate::domain::limits::{ARCHIVE_OBJECTS_MAX, INFLATE_FREE_BYTES};
use crate::domain::name::Slug;
use crate::http::{ApiError, ErrorCode};
use crate::ports::store::Bucket;

/// Largest manifest of an archive, in bytes.
const MANIFEST_BYTES_MAX: u64 = (ARCHIVE_OBJECTS_MAX * 512) as u64;
const BUFFER_BYTES: usize = 64 << 10;
/// Largest compression ratio: deflate reaches at most 1,032, which files of repeated lines approach.
const RATIO_MAX: u64 = 1_040;

/// An object of an inspected archive.
#[derive(Debug)]
pub(super) struct Packed {
    pub(super) bucket: Bucket,
    /// Relative to the pipeline's prefix.
    pub(super) key: String,
    pub(super) sha256: String,
    pub(super) entry: ArchiveEntry,
}

impl Packed {
    pub(super) fn is_config(&self) -> bool {
        self.bucket == Bucket::Pipelines && self.key == CONFIG
    }

    /// The table, if the entry is a manifest's root.
    pub(super) fn root_of(&self) -> Option<&str> {
        let name = self.key.strip_prefix("manifests/").filter(|_| self.bucket == Bucket::Pipelines)?;
        name.strip_suffix(".json").filter(|name| !name.contains('/'))
    }
}

/// An archive without problems.
#[derive(Debug)]
pub(super) struct Inspected {
    /// The exported pipeline's slug.
    pub(super) slug: Slug,
    pub(super) objects: Vec<Packed>,
    /// Size of all objects, in bytes.
    pub(super) size: u64,
}

/// Inspects an archive that inflates to at most `bytes_max` bytes.
///
/// # Errors
/// `invalid_archive` with the problems of the first check that fails; `payload_too_large`; `internal` if the file can't
/// be read.
pub(super) fn inspect(file: &File, bytes_max: u64) -> Result<Inspected, ApiError> {
    let mut problems = Problems::default();
    let mut entries = entries::read(file, &mut problems).map_err(ApiError::internal)?;
    problems.check()?;
    check_sizes(&entries, bytes_max, &mut problems)?;
    let manifest = entries.iter().position(|entry| entry.name == MANIFEST).map(|at| entries.remove(at));
    let objects: Vec<(Bucket, String, ArchiveEntry)> = entries
        .into_iter()
        .filter_map(|entry| match object_of(&entry.name) {
            Ok((bucket, key)) => Some((bucket, key, entry)),
            Err(why) => {
                problems.add(&entry.name, why);
                None
            }
        })
        .collect();
    problems.check()?;
    let Some(manifest) = manifest else {
        problems.add("", format!("it has no `{MANIFEST}`: it was not exported by Lakemill, or is truncated"));
        return Err(problems.check().err().unwrap_or_else(|| ApiError::of(ErrorCode::InvalidArchive)));
    };
    let manifest = read_manifest(file, &manifest, &mut problems)?;
    let slug = Slug::parse(&manifest.slug);
    if let Err(error) = &slug {
        problems.add(MANIFEST, error.to_string());
    }
    let inspected = check_objects(file, objects, manifest, &mut problems)?;
    problems.check()?;
    let slug = slug.map_err(|error| ApiError::new(ErrorCode::InvalidArchive, error.to_string()))?;
    let size = inspected.iter().map(|object| object.entry.size).sum();
    Ok(Inspected { slug, objects: inspected, size })
}

/// Checks the sizes in the directory before anything is inflated.
fn check_sizes(entries: &[ArchiveEntry], bytes_max: u64, problems: &mut Problems) -> Result<(), ApiError> {
    let mut total = 0_u64;
    for entry in entries {
        total = total.saturating_add(entry.size);
        let most = entry.packed.saturating_mul(RATIO_MAX).max(INFLATE_FREE_BYTES);
        if entry.size > most {
            problems.add(&entry.name, format!("it inflates to more than {RATIO_MAX} times its size"));
        }
        if entry.method == CompressionMethod::Stored && entry.size != entry.packed {
            problems.add(&entry.name, "its sizes are inconsistent");
        }
    }
    problems.check()?;
    if total > bytes_max {
        let message = format!("the archive inflates to {total} bytes, expected at most {bytes_max}");
        return Err(ApiError::new(ErrorCode::PayloadTooLarge, message));
    }
    Ok(())
}

/// The manifest of any version.
#[derive(Deserialize)]
struct FormatOfArchive {
    #[serde(default)]
    format: Option<u64>,
}

fn read_manifest(file: &File, entry: &ArchiveEntry, problems: &mut Problems) -> Result<ArchiveManifest, ApiError> {
    let mut json = Vec::new();
    if entry.size > MANIFEST_BYTES_MAX {
        problems.add(MANIFEST, "it is too large");
    } else if let Err(error) = contents(file, entry).read_to_end(&mut json) {
        problems.add(MANIFEST, read_problem(&error)?);
    }
    problems.check()?;
    let format = serde_json::from_slice::<FormatOfArchive>(&json).ok().and_then(|of| of.format);
    if let Some(found) = format.filter(|format| *format != u64::from(FORMAT)) {
        problems.add(MANIFEST, format!("found format {found}, expected {FORMAT}"));
    }
    problems.check()?;
    serde_json::from_slice(&json).map_err(|error| {
        problems.add(MANIFEST, format!("malformed manifest: {error}"));
        problems.check().err().unwrap_or_else(|| ApiError::of(ErrorCode::InvalidArchive))
    })
}

/// Inflates every object and compares it with the manifest.
fn check_objects(
    file: &File,
    objects: Vec<(Bucket, String, ArchiveEntry)>,
    manifest: ArchiveManifest,
    problems: &mut Problems,
) -> Result<Vec<Packed>, ApiError> {
    let mut expected = HashMap::new();
    for object in manifest.objects {
        let path = object.path.clone();
        if expected.insert(path.clone(), object).is_some() {
            problems.add(&path, "the manifest lists it twice");
        }
    }
    let mut inspected = Vec::with_capacity(objects.len());
    for (bucket, key, entry) in objects {
        let mut hasher = Sha256::new();
        let read = io::copy(&mut contents(file, &entry), &mut HashWriter(&mut hasher));
        if let Err(error) = read {
            problems.add(&entry.name, read_problem(&error)?);
            continue;
        }
        let sha256 = hex(&hasher.finalize());
        match expected.remove(&entry.name) {
            None => problems.add(&entry.name, "the manifest doesn't list it"),
            Some(object) if object.size != entry.size || object.sha256 != sha256 => {
                problems.add(&entry.name, "its size or checksum differs from the manifest");
            }
            Some(_) => {}
        }
        let object = Packed { bucket, key, sha256, entry };
        if let Err(why) = check_size(&object.entry.name, object.entry.size) {
            problems.add(&object.entry.name, why);
        }
        inspected.push(object);
    }
    let mut missing: Vec<String> = expected.into_keys().collect();
    missing.sort_unstable();
    missing.iter().for_each(|path| problems.add(path, "the manifest lists it, but it is missing"));
    Ok(inspected)
}

struct HashWriter<'a>(&'a mut Sha256);

impl io::Write for HashWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The problem of an unreadable entry.
///
/// # Errors
/// `internal` if the entry isn't the cause.
fn read_problem(error: &io::Error) -> Result<String, ApiError> {
    match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof => {
            Ok(format!("it can't be inflated: {error}"))
        }
        _ => Err(ApiError::internal(error)),
    }
}

/// The bytes of a file from one offset to another.
struct Section<'a> {
    file: &'a File,
    at: u64,
    end: u64,
}

impl Read for Section<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.end.saturating_sub(self.at)).unwrap_or(usize::MAX).min(out.len());
        let read = self.file.read_at(&mut out[..most], self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// Reads the bytes of an entry; fails with `InvalidData` if they don't match the directory.
pub(super) fn contents<'a>(file: &'a File, entry: &ArchiveEntry) -> Contents<'a> {
    let section = Section { file, at: entry.start, end: entry.start.saturating_add(entry.packed) };
    let bytes = BufReader::with_capacity(BUFFER_BYTES, section);
    let inner = match entry.method {
        CompressionMethod::Stored => Inner::Stored(bytes),
        CompressionMethod::Deflated => Inner::Deflated(DeflateDecoder::new(bytes)),
    };
    Contents { inner, left: entry.size, crc: Crc::new(), expected: entry.crc, packed: entry.packed, done: false }
}

enum Inner<'a> {
    Stored(BufReader<Section<'a>>),
    Deflated(DeflateDecoder<BufReader<Section<'a>>>),
}

/// See [`contents`].
pub(super) struct Contents<'a> {
    inner: Inner<'a>,
    /// Bytes still expected.
    left: u64,
    crc: Crc,
    expected: u32,
    packed: u64,
    done: bool,
}

impl Read for Contents<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let wrong = |what: &str| Err(io::Error::new(io::ErrorKind::InvalidData, what));
        if self.done || out.is_empty() {
            return Ok(0);
        }
        let read = match &mut self.inner {
            Inner::Stored(bytes) => bytes.read(out)?,
            Inner::Deflated(bytes) => bytes.read(out)?,
        };
        if read as u64 > self.left {
            return wrong("it is larger than the directory says");
        }
        self.left -= read as u64;
        self.crc.update(&out[..read]);
        if read > 0 {
            return Ok(read);
        }
        self.done = true;
        let consumed = match &self.inner {
            Inner::Stored(_) => self.packed,
            Inner::Deflated(bytes) => bytes.total_in(),
        };
        if self.left > 0 || consumed != self.packed {
            return wrong("it is shorter than the directory says");
        }
        if self.crc.sum() != self.expected {
            return wrong("its checksum is wrong");
        }
        Ok(0)
    }
}

/// Fuzz target: if the strict reader accepts the input as an archive, the `zip` crate reads it the same way.
#[cfg(any(test, feature = "fuzzing"))]
pub fn fuzz_archive(input: &[u8]) {
    let mut file: File = tempfile::tempfile().expect("there is a folder for temporary files");
    io::Write::write_all(&mut file, input).expect("there is room");
    let mut problems = Problems::default();
    let entries = entries::read(&file, &mut problems).expect("the file can be read");
    for entry in &entries {
        let end = entry.start.checked_add(entry.packed);
        assert!(
            end.is_some_and(|end| end <= input.len() as u64) || !problems.is_empty(),
            "{entry:?} is outside the archive"
        );
    }
    if !problems.is_empty() {
        return;
    }
    for pair in entries.windows(2) {
        assert!(pair[0].start + pair[0].packed <= pair[1].start, "{pair:?} share bytes");
    }
    // Archives that the crate rejects fail later, when their contents are read.
    let Ok(mut theirs) = zip::ZipArchive::new(io::Cursor::new(input)) else { return };
    let mut found = std::collections::BTreeMap::new();
    for at in 0..theirs.len() {
        let Ok(entry) = theirs.by_index_raw(at) else { return };
        let Ok(name) = entry.name().map(std::borrow::Cow::into_owned) else { return };
        if !name.ends_with('/') {
            let method = match entry.compression() {
                zip::CompressionMethod::Stored => Some(CompressionMethod::Stored),
                zip::CompressionMethod::Deflated => Some(CompressionMethod::Deflated),
                _ => None,
            };
            let sizes = (entry.compressed_size(), entry.size(), entry.crc32());
            found.insert(name, (method, entry.data_start(), sizes));
        }
    }
    let ours: std::collections::BTreeMap<_, _> =
        entries.into_iter().map(|e| (e.name, (Some(e.method), Some(e.start), (e.packed, e.size, e.crc)))).collect();
    assert_eq!(ours, found);
}
