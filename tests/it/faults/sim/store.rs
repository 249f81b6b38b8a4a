//! The object store as a simulated process sees it.

use std::io::Read;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use lakemill::ports::ObjectStore;
use lakemill::ports::store::{
    Bucket, Capabilities, ETag, Lease, ListPage, LocalStore, ObjectMeta, ObjectReader, Precondition, RequestCounts,
    StagedFile, StoreError, StoreResult, WriteOptions,
};
use lakemill::runtime::simulation;

use super::world::{CallOutcome, LateWrite, Mutation, World};
use crate::faults::checker::Written;

/// How long an unavailable store blocks a caller.
const TIMEOUT: Duration = Duration::from_millis(700);

pub struct SimStore {
    pub world: Arc<World>,
    pub process: usize,
}

impl SimStore {
    fn transient(bucket: Bucket, key: &str, operation: &'static str) -> StoreError {
        let source = std::io::ErrorKind::ConnectionReset.into();
        StoreError::Transient { bucket, key: key.to_owned(), operation, source }
    }

    fn call<T>(
        &self,
        (name, bucket, key): (&'static str, Bucket, &str),
        op: impl FnOnce() -> StoreResult<T>,
    ) -> StoreResult<T> {
        let world = &self.world;
        let lost = || Self::transient(bucket, key, name);
        // Threads of the engine are not scheduled: they run while the thread that started them is scheduled.
        if simulation::current().is_none() {
            return if world.is_store_stopped() { Err(lost()) } else { op() };
        }
        let fate = world.set_out(self.process, false);
        if world.is_store_stopped() {
            world.pause(TIMEOUT);
            return Err(lost());
        }
        if fate == CallOutcome::Error {
            self.note(name, bucket, key, "fails");
            return Err(lost());
        }
        world.land();
        let done = op();
        let outcome = match &done {
            Ok(_) => "",
            Err(StoreError::NotFound { .. }) => "isn't there",
            Err(StoreError::PreconditionFailed { .. }) => "is in another state",
            Err(StoreError::LeaseLost(_)) => "is refused: the lease is lost",
            Err(_) => "is refused",
        };
        self.note(name, bucket, key, if fate == CallOutcome::LostReply { "loses its reply" } else { outcome });
        world.send_response(self.process);
        if fate == CallOutcome::LostReply { Err(lost()) } else { done }
    }

    fn note(&self, name: &str, bucket: Bucket, key: &str, how: &str) {
        self.world.scheduler.note(self.process, format!("{name} {bucket}:{key} {how}"));
    }

    /// Sends a write whose sender gets no response.
    fn send_write(&self, bucket: Bucket, lease: Option<&dyn Lease>, what: LateWrite) -> StoreResult<()> {
        if let Some(lease) = lease {
            lease.remaining()?;
        }
        self.world.send_late(bucket, what);
        Ok(())
    }

    fn write(
        &self,
        name: &'static str,
        (bucket, key): (Bucket, &str),
        bytes: &[u8],
        options: &WriteOptions<'_>,
    ) -> StoreResult<ObjectMeta> {
        let world = &self.world;
        self.call((name, bucket, key), || {
            if world.is_disk_full() {
                return Err(StoreError::DiskFull { bucket, key: key.to_owned() });
            }
            let written = Written::of(bucket, key, bytes);
            let is_record = matches!(written, Some(Written::Record { .. }));
            let mut options = WriteOptions { lease: options.lease, ..options.clone() };
            match world.mutation {
                Mutation::AnyoneWrites => options = WriteOptions::default(),
                Mutation::OverwritesRecords if is_record => options.precondition = Precondition::None,
                Mutation::AcknowledgesFirst if is_record => {
                    let Some(Written::Record { job }) = written else { unreachable!() };
                    world.held_back.lock().unwrap().insert(job, (key.to_owned(), bytes.to_vec()));
                    return Err(StoreError::PreconditionFailed { bucket, key: key.to_owned() });
                }
                _ => {}
            }
            if world.is_late(self.process, bucket, false) {
                let precondition = match world.mutation {
                    Mutation::LateWritesUnchecked => Precondition::None,
                    _ => options.precondition,
                };
                self.send_write(
                    bucket,
                    options.lease,
                    LateWrite::Put { key: key.into(), bytes: bytes.to_vec(), precondition },
                )?;
                return Err(Self::transient(bucket, key, name));
            }
            let meta = world.store.put(bucket, key, bytes, &options)?;
            world.history.lock().unwrap().written.extend(written);
            Ok(meta)
        })
    }
}

impl ObjectStore for SimStore {
    fn list(
        &self,
        bucket: Bucket,
        prefix: &str,
        delimiter: Option<char>,
        after: Option<&str>,
        limit: usize,
    ) -> StoreResult<ListPage> {
        self.call(("list", bucket, prefix), || self.world.store.list(bucket, prefix, delimiter, after, limit))
    }

    fn head(&self, bucket: Bucket, key: &str) -> StoreResult<Option<ObjectMeta>> {
        self.call(("head", bucket, key), || self.world.store.head(bucket, key))
    }

    fn get(&self, bucket: Bucket, key: &str, if_match: Option<&ETag>) -> StoreResult<ObjectReader> {
        if let Some((key, bytes)) = self.held_back(key) {
            let meta = ObjectMeta { key, size: bytes.len() as u64, etag: None, modified: Default::default() };
            return Ok(ObjectReader { meta, body: Box::new(std::io::Cursor::new(bytes)) });
        }
        self.call(("get", bucket, key), || self.world.store.get(bucket, key, if_match))
    }

    fn get_range(&self, bucket: Bucket, key: &str, range: Range<u64>, if_match: Option<&ETag>) -> StoreResult<Vec<u8>> {
        self.call(("get", bucket, key), || self.world.store.get_range(bucket, key, range, if_match))
    }

    fn put(&self, bucket: Bucket, key: &str, body: &[u8], options: &WriteOptions<'_>) -> StoreResult<ObjectMeta> {
        self.write("put", (bucket, key), body, options)
    }

    fn put_file(&self, bucket: Bucket, key: &str, file: &Path, options: &WriteOptions<'_>) -> StoreResult<ObjectMeta> {
        let mut bytes = Vec::new();
        let read = std::fs::File::open(file).and_then(|mut file| file.read_to_end(&mut bytes));
        read.map_err(|_| Self::transient(bucket, key, "reading the file for"))?;
        self.write("put", (bucket, key), &bytes, options)
    }

    fn stage_file<'s>(
        &'s self,
        _: Bucket,
        _: &str,
        _: &Path,
        _: &str,
        _: &'s dyn Lease,
        _: &(dyn Fn() -> bool + Sync),
    ) -> StoreResult<Option<Box<dyn StagedFile + 's>>> {
        Ok(None)
    }

    fn sync(&self, _: usize) -> StoreResult<()> {
        Ok(())
    }

    fn copy(&self, from: (Bucket, &str), to: (Bucket, &str), options: &WriteOptions<'_>) -> StoreResult<ObjectMeta> {
        self.call(("copy", to.0, to.1), || self.world.store.copy(from, to, options))
    }

    fn delete(&self, bucket: Bucket, keys: &[String], options: &WriteOptions<'_>) -> StoreResult<()> {
        let first = keys.first().map_or("", String::as_str);
        self.call(("delete", bucket, first), || {
            if self.world.is_late(self.process, bucket, true) {
                self.send_write(bucket, options.lease, LateWrite::Delete { keys: keys.to_vec() })?;
                return Err(Self::transient(bucket, first, "delete"));
            }
            match self.world.mutation {
                Mutation::AnyoneWrites => self.world.store.delete(bucket, keys, &WriteOptions::default()),
                _ => self.world.store.delete(bucket, keys, options),
            }
        })
    }

    fn capabilities(&self) -> StoreResult<Capabilities> {
        self.world.store.capabilities()
    }

    fn local(&self) -> Option<&dyn LocalStore> {
        Some(self)
    }

    fn address(&self, bucket: Bucket, key: &str) -> StoreResult<String> {
        Ok(format!("s3://{bucket}/{key}"))
    }

    fn clock_skew(&self) -> Option<TimeDelta> {
        Some(TimeDelta::milliseconds(self.world.scheduler.ahead_ms(self.process)))
    }

    fn request_counts(&self) -> RequestCounts {
        RequestCounts::default()
    }
}

impl LocalStore for SimStore {}

impl SimStore {
    fn held_back(&self, key: &str) -> Option<(String, Vec<u8>)> {
        let held = self.world.held_back.lock().unwrap();
        held.values().find(|(held, _)| held == key).cloned()
    }
}
