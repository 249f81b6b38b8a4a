//! Fetches stored files of a table to scratch, checked by their hashes.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::domain::digest::hex;
use crate::domain::job::RunError;
use crate::domain::layout::pipeline_prefix;
use crate::domain::table_log::entries::StoredFile;
use crate::engine::run_error::{scratch_error, store_error};
use crate::pipelines::tables::TableStore;
use crate::ports::store::{Bucket, StoreError};
use crate::sync::parallel_map;

/// Files fetched at the same time from a remote store.
const PARALLEL_FETCHES_MAX: usize = 32;
const BUFFER_BYTES: usize = 256 << 10;

/// A stored file.
pub(super) enum Fetched {
    /// In scratch; it must not be written.
    File(PathBuf),
    /// Why it isn't the file that the manifest names.
    Lost(String),
}

/// Fetches `files` to `folder`.
pub(super) fn fetch(table: &TableStore<'_>, files: &[StoredFile], folder: &Path) -> Result<Vec<Fetched>, RunError> {
    let at_a_time = if table.store.is_remote() { PARALLEL_FETCHES_MAX } else { 1 };
    let numbered: Vec<(usize, &StoredFile)> = files.iter().enumerate().collect();
    parallel_map(&numbered, at_a_time, |(at, file)| fetch_one(table, file, &folder.join(format!("stored-{at}"))))
}

fn fetch_one(table: &TableStore<'_>, file: &StoredFile, into: &Path) -> Result<Fetched, RunError> {
    let key = format!("{}{}", pipeline_prefix(table.slug), file.key);
    let _ = std::fs::remove_file(into);
    let found = match table.store.link(Bucket::Warehouse, &key, None, into) {
        Ok(true) => hash_of(into).map_err(|error| scratch_error(into, &error))?,
        Ok(false) => match copy(table, &key, into)? {
            Some(found) => found,
            None => return Ok(Fetched::Lost("it is missing".to_owned())),
        },
        Err(StoreError::NotFound { .. } | StoreError::PreconditionFailed { .. }) => {
            return Ok(Fetched::Lost("it is missing".to_owned()));
        }
        Err(error) => return Err(store_error(error)),
    };
    Ok(match found == file.sha256 {
        true => Fetched::File(into.to_owned()),
        false => Fetched::Lost(format!("its SHA-256 is {found}, expected {}", file.sha256)),
    })
}

fn hash_of(path: &Path) -> io::Result<String> {
    let (mut file, mut hash, mut buffer) = (File::open(path)?, Sha256::new(), vec![0; BUFFER_BYTES]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(&hash.finalize())),
            read => hash.update(&buffer[..read]),
        }
    }
}

/// Copies an object; returns its hash, or `None` if there is none.
fn copy(table: &TableStore<'_>, key: &str, into: &Path) -> Result<Option<String>, RunError> {
    let mut body = match table.store.get(Bucket::Warehouse, key, None) {
        Ok(object) => object.body,
        Err(StoreError::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(store_error(error)),
    };
    let failed = |source| {
        store_error(StoreError::Transient {
            bucket: Bucket::Warehouse,
            key: key.to_owned(),
            operation: "reading",
            source,
        })
    };
    let mut file = File::create(into).map_err(|error| scratch_error(into, &error))?;
    let (mut hash, mut buffer) = (Sha256::new(), vec![0; BUFFER_BYTES]);
    loop {
        let read = body.read(&mut buffer).map_err(failed)?;
        if read == 0 {
            return Ok(Some(hex(&hash.finalize())));
        }
        hash.update(&buffer[..read]);
        file.write_all(&buffer[..read]).map_err(|error| scratch_error(into, &error))?;
    }
}
