//! Probes the dependencies of all jobs, and decides whether a dependency or the job itself caused a failed attempt.
//!
//! Invariants:
//! - an attempt counts only if the probes of the dependencies that may have caused its error pass;
//! - a job that always fails ends: probes are independent of the job, and one process refunds it a bounded number of
//!   times.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use rustix::fs::{FallocateFlags, fallocate, statvfs};
use rustix::io::Errno;

use super::breaker::Dependency;
use super::shared::WorkerShared;
use super::stopping::Phase;
use crate::domain::job::{JobId, RunError, RunErrorCode};
use crate::domain::layout::probe_key;
use crate::domain::limits::RUN_MEMORY_BYTES_MIN;
use crate::ports::ObjectStore;
use crate::ports::store::{Bucket, StoreResult, WriteOptions};
use crate::runtime::WatchedThread;
use crate::runtime::threads::Instant;
use crate::system::available_memory;

/// Free space that scratch must have, unless an eighth of its file system is less.
const SCRATCH_FREE_BYTES_MIN: u64 = RUN_MEMORY_BYTES_MIN;
/// Written and synced, to find a disk that fails without being full.
const SCRATCH_WRITE: [u8; 4_096] = [0x5a; 4_096];
/// Descriptors that must be available.
const DESCRIPTORS: usize = 32;
/// Memory that must be available.
const MEMORY_BYTES: usize = 64 << 20;

/// Whether jobs may be claimed. Probes suspected dependencies, and failed ones when they are due.
pub(super) fn may_claim(shared: &WorkerShared, watched: &WatchedThread) -> bool {
    let breakers = &shared.state.breakers;
    for dependency in Dependency::ALL {
        if shared.stopping.phase() != Phase::Working {
            return false;
        }
        if breakers.is_probe_due(dependency) {
            breakers.record_probe(dependency, watched.waiting(|| probe(shared, dependency)));
        }
    }
    let closed = breakers.open().is_empty();
    if closed {
        breakers.set_passed();
    }
    closed
}

/// An attempt that failed because of a dependency.
pub(super) struct DependencyFailure {
    pub(super) dependency: Dependency,
    /// How often this process refunded the job, including this time.
    pub(super) refunds: u32,
}

/// Probes the dependencies that may have caused `error` of an attempt that began at `began`, and returns the one that
/// fails. Claims pause if a probe fails.
pub(super) fn failed_dependency(
    shared: &WorkerShared,
    job: &JobId,
    error: &RunError,
    began: Instant,
) -> Option<DependencyFailure> {
    let breakers = &shared.state.breakers;
    let at_fault = |dependency: &Dependency| {
        let outcome = probe(shared, *dependency);
        let fails = outcome.is_err();
        breakers.record_probe(*dependency, outcome);
        // The store may have recovered before this attempt ended; a full scratch may have been filled by this attempt.
        fails || (*dependency == Dependency::Store && breakers.was_open_since(*dependency, began))
    };
    let dependency = *suspects(error.code).iter().find(|dependency| at_fault(dependency))?;
    Some(DependencyFailure { dependency, refunds: shared.refunds.take(job)? })
}

/// Dependencies that may cause an error, the likeliest first.
fn suspects(code: RunErrorCode) -> &'static [Dependency] {
    match code {
        RunErrorCode::S3Error | RunErrorCode::AccessDenied | RunErrorCode::BucketNotFound => &[Dependency::Store],
        RunErrorCode::DiskFull => &[Dependency::Store, Dependency::Scratch],
        RunErrorCode::Internal | RunErrorCode::Panicked => &[Dependency::Scratch, Dependency::Host],
        RunErrorCode::ExpressionFailed => &[Dependency::Host],
        RunErrorCode::InvalidConfig
        | RunErrorCode::PipelineConfigNotFound
        | RunErrorCode::NoInput
        | RunErrorCode::TooManyRejects
        | RunErrorCode::RowFailed
        | RunErrorCode::HeaderMismatch
        | RunErrorCode::UnreadableSource
        | RunErrorCode::SourceChanged
        | RunErrorCode::ArchivedSourcesMissing
        | RunErrorCode::AccountingBroken
        | RunErrorCode::VerificationFailed
        | RunErrorCode::LeaseLost
        | RunErrorCode::SourceBeingWritten
        | RunErrorCode::InvalidJob
        | RunErrorCode::WorkerLost
        | RunErrorCode::WorkerStopping
        | RunErrorCode::Cancelled => &[],
    }
}

fn probe(shared: &WorkerShared, dependency: Dependency) -> Result<(), String> {
    match dependency {
        Dependency::Store => store(&*shared.store).map_err(|error| error.to_string()),
        Dependency::Kv => shared.kv.probe_write().map_err(|error| error.to_string()),
        Dependency::Scratch => {
            let folder = &shared.options.scratch_dir;
            scratch(folder).map_err(|error| format!("scratch `{}`: {error}", folder.display()))
        }
        Dependency::Host => host().map_err(|error| error.to_string()),
    }
}

/// Lists each bucket, and writes and deletes an object where runs do.
fn store(store: &dyn ObjectStore) -> StoreResult<()> {
    for bucket in Bucket::ALL {
        store.list(bucket, "pipelines/", Some('/'), None, 1)?;
    }
    let key = probe_key(&uuid::Uuid::new_v4().to_string());
    for bucket in [Bucket::Pipelines, Bucket::Warehouse] {
        let options = WriteOptions::default();
        store.put(bucket, &key, b"probe", &options)?;
        store.delete(bucket, std::slice::from_ref(&key), &options)?;
    }
    Ok(())
}

/// Reserves space in the folder, and writes and syncs a little of it.
fn scratch(folder: &Path) -> io::Result<()> {
    let found = statvfs(folder)?;
    let room = SCRATCH_FREE_BYTES_MIN.min(found.f_blocks.saturating_mul(found.f_frsize) / 8);
    let path = folder.join(format!("probe-{}", uuid::Uuid::new_v4()));
    let written = File::create_new(&path).and_then(|file| reserve(&file, room));
    let removed = std::fs::remove_file(&path);
    match written {
        Err(error) if error.kind() == io::ErrorKind::StorageFull => {
            Err(io::Error::new(error.kind(), format!("less than {} MiB are free", room.div_ceil(1 << 20))))
        }
        written => written.and(removed),
    }
}

fn reserve(mut file: &File, bytes: u64) -> io::Result<()> {
    match fallocate(file, FallocateFlags::empty(), 0, bytes.max(1)) {
        // Not every file system can reserve space.
        Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
        Err(error) => return Err(error.into()),
    }
    file.write_all(&SCRATCH_WRITE)?;
    file.sync_data()
}

/// Starts a thread, opens descriptors, allocates memory, and checks how much is available.
fn host() -> io::Result<()> {
    let failed = |what: &str, error: &dyn std::fmt::Display| io::Error::other(format!("{what}: {error}"));
    let thread = std::thread::Builder::new().name("probe".into()).spawn(|| {});
    let thread = thread.map_err(|error| failed("starting a thread", &error))?;
    // It can't panic.
    let _ = thread.join();
    let open = (0..DESCRIPTORS).map(|_| File::open("/dev/null")).collect::<io::Result<Vec<_>>>();
    open.map_err(|error| failed(&format!("opening {DESCRIPTORS} files"), &error))?;
    let allocated = Vec::<u8>::new().try_reserve_exact(MEMORY_BYTES);
    allocated.map_err(|error| failed(&format!("allocating {} MiB", MEMORY_BYTES >> 20), &error))?;
    // The kernel reserves addresses beyond its memory.
    match available_memory() {
        Some(bytes) if bytes < MEMORY_BYTES as u64 => {
            let (found, expected) = (bytes >> 20, MEMORY_BYTES >> 20);
            Err(io::Error::other(format!("{found} MiB of memory are available, expected {expected} MiB")))
        }
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scratch_probe_leaves_no_file_and_reports_the_failure() {
        let folder = tempfile::tempdir().unwrap();
        scratch(folder.path()).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert_eq!(scratch(&folder.path().join("gone")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn host_probe_passes_on_a_healthy_machine() {
        host().unwrap();
    }
}
