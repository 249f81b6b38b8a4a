//! Copies single objects into a backup.
//!
//! At most [`TRANSFERS_MAX`] at a time, each with one part in memory.

use std::io::Read;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use super::error::{BackupError, BackupResult};
use super::known::{DataName, KnownData, data_name};
use super::place::BackupPlace;
use crate::domain::backup::{BackupObject, OBJECT_BYTES_MAX, PART_BYTES, content_name, version_name};
use crate::domain::digest::{hex, sha256_hex};
use crate::ports::ObjectStore;
use crate::ports::store::{BodyChanged, Bucket, ObjectReader, StoreError};
use crate::runtime::failpoint::reach;
use crate::sync::{Permit, Semaphore};

/// Objects copied at the same time.
pub(super) const TRANSFERS_MAX: usize = 16;
/// Attempts to copy an object that changes meanwhile.
const TRIES_MAX: usize = 5;
/// Interval at which waiting transfers look for a signal.
const WAIT: Duration = Duration::from_secs(1);

/// Counts of transferred objects.
#[derive(Debug, Default)]
pub struct TransferCounts {
    /// Objects looked at.
    pub seen: AtomicU64,
    /// Objects that were written, and their bytes.
    pub objects: AtomicU64,
    pub bytes: AtomicU64,
}

/// The progress of a backup or a restore, and whether it must stop.
#[derive(Clone, Copy)]
pub struct TransferWatch<'a> {
    pub counts: &'a TransferCounts,
    pub is_stopped: &'a (dyn Fn() -> bool + Sync),
}

impl TransferWatch<'_> {
    /// # Errors
    /// [`BackupError::Interrupted`] after a signal.
    pub(super) fn check(&self) -> BackupResult<()> {
        if (self.is_stopped)() { Err(BackupError::Interrupted) } else { Ok(()) }
    }

    pub(super) fn permit(&self, transfers: &Semaphore) -> BackupResult<Permit> {
        loop {
            self.check()?;
            if let Some(permit) = transfers.acquire(WAIT) {
                return Ok(permit);
            }
        }
    }

    pub(super) fn seen(&self) {
        self.counts.seen.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn written(&self, bytes: u64) {
        self.counts.objects.fetch_add(1, Ordering::Relaxed);
        self.counts.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Copies objects of a store into a place.
pub(super) struct BackupTransfers<'a> {
    pub(super) source: &'a dyn ObjectStore,
    pub(super) place: BackupPlace<'a>,
    pub(super) watch: TransferWatch<'a>,
    /// What the place had at the start.
    pub(super) known: KnownData,
    /// Whether data is written even if it is there.
    pub(super) is_full: bool,
    /// The data that was written: names, and sizes of the objects.
    added: Mutex<Vec<(DataName, u64)>>,
    transfers: Semaphore,
}

impl<'a> BackupTransfers<'a> {
    pub(super) fn new(
        source: &'a dyn ObjectStore,
        place: BackupPlace<'a>,
        watch: TransferWatch<'a>,
        known: KnownData,
        is_full: bool,
    ) -> Self {
        let (added, transfers) = (Mutex::default(), Semaphore::new(TRANSFERS_MAX));
        Self { source, place, watch, known, is_full, added, transfers }
    }

    /// Takes the data that was written since the last call, in order.
    pub(super) fn take_added(&self) -> Vec<(DataName, u64)> {
        let mut added = std::mem::take(&mut *self.added.lock());
        added.sort_unstable();
        added.dedup();
        added
    }

    /// Copies an object; `None` if there is none. `content`: its size and SHA-256 by a manifest.
    pub(super) fn copy(
        &self,
        bucket: Bucket,
        key: &str,
        content: Option<&(u64, String)>,
    ) -> BackupResult<Option<BackupObject>> {
        self.watch.check()?;
        if let Some((size, sha256)) = content.filter(|_| !self.is_full) {
            let object = BackupObject { size: *size, sha256: sha256.clone(), data: content_name(sha256), etag: None };
            if self.known.has_object(&object) {
                return Ok(Some(object));
            }
        }
        let _permit = self.watch.permit(&self.transfers)?;
        for _ in 0..TRIES_MAX {
            let object = match self.source.get(bucket, key, None) {
                Ok(object) => object,
                Err(StoreError::NotFound { .. }) => return Ok(None),
                Err(error) => return Err(error.into()),
            };
            match self.copy_version(bucket, object, content) {
                Err(BackupError::Store(StoreError::Transient { source, .. })) if BodyChanged::is_in(&source) => {}
                copied => return copied.map(Some),
            }
        }
        let source = std::io::Error::other("the object keeps changing while it is copied");
        Err(StoreError::Transient { bucket, key: key.to_owned(), operation: "copying", source }.into())
    }

    fn copy_version(
        &self,
        bucket: Bucket,
        object: ObjectReader,
        content: Option<&(u64, String)>,
    ) -> BackupResult<BackupObject> {
        let ObjectReader { meta, body } = object;
        let damaged = |found: String| BackupError::DamagedSource { key: meta.key.clone(), found };
        if let Some((size, _)) = content.filter(|(size, _)| *size != meta.size) {
            return Err(damaged(format!("it has {} bytes, expected {size}", meta.size)));
        }
        if meta.size > OBJECT_BYTES_MAX {
            return Err(damaged(format!("it has {} bytes, expected at most {OBJECT_BYTES_MAX}", meta.size)));
        }
        let mut parts = Parts { body, left: meta.size, bucket, key: &meta.key };
        let etag = meta.etag.as_ref().map(|etag| etag.0.clone());
        // Only what is checked completes the data of an object: the last part is written after the hash is known.
        let mut hash = Sha256::new();
        let (mut number, mut part) = (0, Vec::new());
        parts.read(&mut part)?;
        let name = match (content, &etag) {
            (Some((_, sha256)), _) => content_name(sha256),
            (None, _) if meta.size <= PART_BYTES => content_name(&sha256_hex(&part)),
            (None, etag) => version_name(bucket, &meta.key, etag.as_deref().unwrap_or_default(), meta.size),
        };
        let is_there = !self.is_full && self.known.has(&name, meta.size);
        loop {
            hash.update(&part);
            if parts.left == 0 {
                break;
            }
            if !is_there {
                self.place.put_part(&name, number, &part, None)?;
            }
            self.watch.check()?;
            number += 1;
            parts.read(&mut part)?;
        }
        let sha256 = hex(&hash.finalize());
        if let Some((_, expected)) = content.filter(|(_, expected)| *expected != sha256) {
            return Err(damaged(format!("its SHA-256 is {sha256}, expected {expected}")));
        }
        if !is_there && meta.size > 0 {
            self.put_last(&name, number, &part, (number == 0).then_some(sha256.as_str()), meta.size)?;
        }
        Ok(BackupObject { size: meta.size, sha256, data: name, etag })
    }

    /// Stores an object of the backup that was made here.
    pub(super) fn put_bytes(&self, object: &BackupObject, bytes: &[u8]) -> BackupResult<()> {
        if !self.is_full && self.known.has_object(object) {
            return Ok(());
        }
        let count = bytes.chunks(usize::try_from(PART_BYTES).unwrap_or(usize::MAX)).len();
        for (number, part) in (0..).zip(bytes.chunks(usize::try_from(PART_BYTES).unwrap_or(usize::MAX))) {
            match number + 1 == count as u64 {
                true => self.put_last(&object.data, number, part, None, object.size)?,
                false => self.place.put_part(&object.data, number, part, None)?,
            }
        }
        Ok(())
    }

    fn put_last(&self, name: &str, number: u64, part: &[u8], sha256: Option<&str>, size: u64) -> BackupResult<()> {
        self.place.put_part(name, number, part, sha256)?;
        self.added.lock().extend(data_name(name).map(|name| (name, size)));
        self.watch.written(size);
        reach("backup::copied");
        Ok(())
    }
}

/// Cuts a body into parts.
struct Parts<'a> {
    body: Box<dyn Read + Send>,
    left: u64,
    bucket: Bucket,
    key: &'a str,
}

impl Parts<'_> {
    /// Replaces `part` by the next one; its memory is used again.
    fn read(&mut self, part: &mut Vec<u8>) -> BackupResult<()> {
        let size = self.left.min(PART_BYTES);
        part.resize(usize::try_from(size).unwrap_or(0), 0);
        let failed = |source| {
            let (bucket, key) = (self.bucket, self.key.to_owned());
            StoreError::Transient { bucket, key, operation: "reading", source }
        };
        self.body.read_exact(part).map_err(failed)?;
        self.left -= size;
        Ok(())
    }
}
