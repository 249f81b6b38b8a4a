//! Fetches a file from the store into the cache.

use std::fs::{self, File};
use std::io::{self, Read, Write};

use sha2::{Digest, Sha256};

use super::slot::Slot;
use super::types::{CacheError, Deadline, Name, RequestedFile};
use crate::domain::digest::hex;
use crate::ports::ObjectStore;
use crate::ports::store::{BodyChanged, Bucket, StoreError};

const BUFFER_BYTES: usize = 256 << 10;
/// Attempts to read a body that breaks off.
const TRIES_MAX: u32 = 2;

/// Fetches a file.
pub(super) fn fetch(
    store: &dyn ObjectStore,
    file: &RequestedFile,
    slot: &Slot,
    name: &Name,
    deadline: Deadline<'_>,
) -> Result<(), CacheError> {
    let temporary = slot.temporary();
    let mut tries = 1;
    let fetched = loop {
        match attempt(store, file, &temporary, deadline) {
            Err(CacheError::Store(StoreError::Transient { .. })) if tries < TRIES_MAX => tries += 1,
            outcome => break outcome,
        }
    };
    let named = fetched.and_then(|()| {
        let path = slot.path(name);
        fs::rename(&temporary, &path).map_err(|source| CacheError::Io { what: "renaming", path, source })
    });
    if named.is_err() {
        // Leftovers are deleted at the next start.
        let _ = fs::remove_file(&temporary);
    }
    named
}

fn attempt(
    store: &dyn ObjectStore,
    file: &RequestedFile,
    temporary: &std::path::Path,
    deadline: Deadline<'_>,
) -> Result<(), CacheError> {
    let reader = store.get(Bucket::Warehouse, &file.key, None).map_err(|error| cache_error(&file.key, error))?;
    if reader.meta.size != file.size {
        return Err(CacheError::Gone { key: file.key.clone() });
    }
    let local = |source| CacheError::Io { what: "writing", path: temporary.to_owned(), source };
    let mut out = File::create(temporary).map_err(local)?;
    let (mut body, mut buffer, mut length) = (reader.body, vec![0; BUFFER_BYTES], 0_u64);
    let mut hash = Sha256::new();
    loop {
        deadline.check()?;
        match body.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => {
                out.write_all(&buffer[..read]).map_err(local)?;
                hash.update(&buffer[..read]);
                length += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if BodyChanged::is_in(&error) => return Err(CacheError::Gone { key: file.key.clone() }),
            Err(source) => return Err(broken(file, source)),
        }
    }
    match length == file.size && hex(&hash.finalize()) == file.sha256 {
        true => Ok(()),
        false => Err(CacheError::Gone { key: file.key.clone() }),
    }
}

/// Checks a file that was linked, which another program may have replaced.
pub(super) fn check_size(file: &RequestedFile) -> Result<(), CacheError> {
    let found = fs::metadata(&file.into);
    let found = found.map_err(|source| CacheError::Io { what: "reading", path: file.into.clone(), source })?;
    if found.len() == file.size { Ok(()) } else { Err(CacheError::Gone { key: file.key.clone() }) }
}

fn broken(file: &RequestedFile, source: io::Error) -> CacheError {
    let (bucket, key) = (Bucket::Warehouse, file.key.clone());
    StoreError::Transient { bucket, key, operation: "reading", source }.into()
}

/// Maps a missing object to [`CacheError::Gone`], other errors to the store's failure.
pub(super) fn cache_error(key: &str, error: StoreError) -> CacheError {
    match error {
        StoreError::NotFound { .. } | StoreError::PreconditionFailed { .. } => CacheError::Gone { key: key.to_owned() },
        error => CacheError::Store(error),
    }
}
