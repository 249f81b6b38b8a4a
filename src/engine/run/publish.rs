//! Publishes tables one after the other, each by one commit.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use chrono::{DateTime, Utc};

use super::dropped_tables::{self, DroppedTable};
use super::failure::{self, RunFailure};
use super::prepared::PreparedTable;
use super::progress::RunCounters;
use super::request::RunRequest;
use super::stager::Stager;
use crate::domain::job::{RunError, RunErrorCode, RunResult, Stage};
use crate::domain::layout::pipeline_prefix;
use crate::domain::table_log::root::{OwnedFile, Owner};
use crate::engine::convert::SpooledFile;
use crate::engine::run_error::{store_error, table_error};
use crate::pipelines::tables::{Commit, FoundRoot, NewObjects, TableError, expire};
use crate::ports::observer::Stop;
use crate::ports::store::{Bucket, WriteOptions};
use crate::runtime::{failpoint, rfc3339};
use crate::sync::parallel_map;

/// Parallel puts: each waits for the disk or the network more than it computes.
const PARALLEL_PUTS_MAX: usize = 16;
/// Parallel puts to a remote store; most only complete staged uploads.
const PARALLEL_REMOTE_PUTS_MAX: usize = 64;

/// Publishes the prepared tables, then deletes the dropped ones.
pub(super) fn publish_all(
    request: &RunRequest<'_>,
    counters: &RunCounters<'_>,
    stager: &Stager<'_, '_>,
    tables: Vec<PreparedTable>,
    dropped: &[DroppedTable],
    result: &mut RunResult,
) -> Result<(), RunFailure> {
    let now = request.clock.now() - request.store.clock_skew().unwrap_or_default();
    let (tables, unchanged): (Vec<_>, Vec<_>) = tables.into_iter().partition(|table| table.edited.is_some());
    let unchanged: Vec<PreparedTable> = unchanged.into_iter().filter(|table| !table.expired(now).is_empty()).collect();
    if tables.is_empty() && dropped.is_empty() && unchanged.is_empty() {
        return Ok(());
    }
    request.observer.begin_publishing().map_err(failure::stopped)?;
    counters.expect_partitions(result.tables.values().map(|table| table.partitions_written).sum());
    let publisher = Publisher { request, counters, stager, now, committed: AtomicBool::new(false) };
    let published = tables.into_iter().try_for_each(|table| publisher.table(table));
    counters.stage(Stage::Finishing);
    let done = published.and_then(|()| publisher.expire(&unchanged)).and_then(|()| publisher.dropped(dropped));
    done.map_err(|error| match publisher.committed.into_inner() {
        true => RunFailure::from(error).partially(),
        false => error.into(),
    })
}

struct Publisher<'a, 'scope, 'env> {
    request: &'a RunRequest<'a>,
    counters: &'a RunCounters<'a>,
    stager: &'a Stager<'scope, 'env>,
    /// By the store's clock.
    now: DateTime<Utc>,
    /// Set before the first commit: a failed one may have been applied.
    committed: AtomicBool,
}

/// A run's error in the middle of a commit.
enum PublishError {
    Run(RunError),
    Table(TableError),
}

impl From<TableError> for PublishError {
    fn from(error: TableError) -> Self {
        Self::Table(error)
    }
}

impl From<PublishError> for RunError {
    fn from(error: PublishError) -> Self {
        match error {
            PublishError::Run(error) => error,
            PublishError::Table(error) => table_error(error),
        }
    }
}

impl Publisher<'_, '_, '_> {
    fn table(&self, table: PreparedTable) -> Result<(), RunError> {
        let expired = table.expired(self.now);
        let PreparedTable { name, found, edited, made, keep_history, .. } = table;
        let Some(mut edited) = edited else { return Ok(()) };
        edited.root.committed_at = rfc3339(self.now);
        self.may_write()?;
        let files = edited.made.files.clone();
        let put_files = || self.put_files(&files, &made);
        let commit = Commit {
            table: self.request.table(&name),
            lease: self.request.lease,
            before: &found,
            next: edited.root,
            retired: edited.retired,
            made: edited.made,
            unchanged: edited.unchanged,
            returned: Vec::new(),
            keep_history: !keep_history.is_zero(),
            expired,
        };
        let objects = NewObjects { shards: edited.shards, put_files: &put_files, files: files.len() };
        let confirm = || {
            self.request.lease.remaining().map_err(|lost| PublishError::Run(store_error(lost.into())))?;
            unless_stopped(self.request.observer.confirm()).map_err(PublishError::Run)?;
            self.may_write().map_err(PublishError::Run)?;
            self.committed.store(true, Ordering::Relaxed);
            Ok(())
        };
        commit.run::<PublishError>(objects, &confirm)?;
        Ok(())
    }

    /// Checked before writes. Once publishing has begun, a run can't be cancelled.
    fn may_write(&self) -> Result<(), RunError> {
        unless_stopped(self.request.observer.check())
    }

    fn put_files(&self, files: &[OwnedFile], made: &BTreeMap<String, SpooledFile>) -> Result<(), PublishError> {
        let mut left: BTreeMap<&str, AtomicUsize> = BTreeMap::new();
        for partition in files.iter().filter_map(partition_of) {
            *left.entry(partition).or_default().get_mut() += 1;
        }
        let put = |file: &OwnedFile| {
            self.put_file(&file.key, made)?;
            failpoint::reach("publish::between_puts");
            let left = partition_of(file).and_then(|partition| left.get(partition));
            if left.is_some_and(|left| left.fetch_sub(1, Ordering::Relaxed) == 1) {
                self.counters.partitions_written(1);
            }
            Ok::<_, RunError>(())
        };
        let at_a_time = if self.request.store.is_remote() { PARALLEL_REMOTE_PUTS_MAX } else { PARALLEL_PUTS_MAX };
        // Staged files are durable before the first of them appears.
        self.request.store.sync(files.len()).map_err(|error| PublishError::Run(store_error(error)))?;
        parallel_map(files, at_a_time, put).map_err(PublishError::Run)?;
        Ok(())
    }

    fn put_file(&self, key: &str, made: &BTreeMap<String, SpooledFile>) -> Result<(), RunError> {
        let Some(file) = made.get(key) else {
            return Err(RunError::new(RunErrorCode::Internal, format!("no file was built for `{key}`")).path(key));
        };
        let full_key = format!("{}{key}", pipeline_prefix(self.request.slug()));
        let options =
            WriteOptions { defer_sync: true, sha256: Some(&file.sha256), ..WriteOptions::leased(self.request.lease) };
        let staged = self.stager.take(&file.path);
        self.may_write()?;
        failpoint::reach("publish::checked");
        let put = match staged {
            Some(staged) => staged.put(&options),
            None => self.request.store.put_file(Bucket::Warehouse, &full_key, &file.path, &options),
        };
        put.map(|_| ()).map_err(store_error)
    }

    /// Deletes the history of unchanged tables that have expired.
    fn expire(&self, tables: &[PreparedTable]) -> Result<(), RunError> {
        for table in tables {
            let FoundRoot::Readable(present) = &table.found else { continue };
            self.may_write()?;
            let store = self.request.table(&table.name);
            expire(&store, present, &table.expired(self.now), self.request.lease).map_err(table_error)?;
        }
        Ok(())
    }

    fn dropped(&self, tables: &[DroppedTable]) -> Result<(), RunError> {
        for table in tables {
            self.may_write()?;
            self.committed.store(true, Ordering::Relaxed);
            dropped_tables::delete(self.request, table)?;
        }
        Ok(())
    }
}

fn partition_of(file: &OwnedFile) -> Option<&str> {
    match &file.owner {
        Owner::Group(key) => Some(&key.partition),
        Owner::Rejects(_) | Owner::Iceberg => None,
    }
}

fn unless_stopped(asked: Result<(), Stop>) -> Result<(), RunError> {
    match asked {
        Ok(()) | Err(Stop::Cancelled) => Ok(()),
        Err(stop @ (Stop::LeaseLost | Stop::WorkerStopping)) => Err(failure::stopped(stop)),
    }
}
