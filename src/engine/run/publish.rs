//! Publishes tables one after the other: publish intent, puts, deletes, verification against a listing, manifest
//! without the intent.
//!
//! Invariant: between the first and the last write to a table, its manifest has a publish intent that names every
//! partition and rejects file that may differ from it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::dropped_tables::{self, DroppedTable};
use super::failure::{self, RunFailure};
use super::output;
use super::prepared::{ManifestState, PreparedTable};
use super::progress::RunCounters;
use super::request::RunRequest;
use super::stager::Stager;
use crate::domain::job::{RunError, RunErrorCode, RunResult, Stage};
use crate::domain::layout::{manifest_key, pipeline_prefix};
use crate::domain::manifest::{FileEntry, Manifest, partition_of};
use crate::domain::plan::Listing;
use crate::engine::run_error::store_error;
use crate::ports::observer::Stop;
use crate::ports::store::{Bucket, ETag, ObjectMeta, Precondition, WriteOptions};
use crate::runtime::failpoint;
use crate::sync::parallel_map;

/// Parallel puts: each waits for the disk or the network more than it computes.
const PARALLEL_PUTS_MAX: usize = 16;
/// Parallel puts of small files, which only wait for the network. Larger files are sent in several parallel parts each.
const PARALLEL_SMALL_PUTS_MAX: usize = 64;
/// Bytes of a small file.
const SMALL_BYTES_MAX: u64 = 1 << 20;

/// Publishes the prepared tables, then deletes the dropped ones.
pub(super) fn publish_all(
    request: &RunRequest<'_>,
    counters: &RunCounters<'_>,
    stager: &Stager<'_, '_>,
    tables: Vec<PreparedTable>,
    dropped: &[DroppedTable],
    result: &mut RunResult,
) -> Result<(), RunFailure> {
    let tables: Vec<PreparedTable> = tables.into_iter().filter(PreparedTable::is_published).collect();
    if tables.is_empty() && dropped.is_empty() {
        return Ok(());
    }
    request.observer.begin_publishing().map_err(failure::stopped)?;
    let written = result.tables.values().map(|t| t.partitions_written).sum();
    counters.expect_partitions(written);
    let conditional = request.store.capabilities().map_err(store_error)?.conditional_writes;
    let publisher = Publisher { request, counters, stager, conditional, wrote: AtomicBool::new(false) };
    let published = tables.into_iter().try_for_each(|table| publisher.table(table));
    counters.stage(Stage::Finishing);
    let done = published.and_then(|()| publisher.dropped(dropped));
    done.map_err(|error| match publisher.wrote.into_inner() {
        true => RunFailure::from(error).partially(),
        false => error.into(),
    })
}

struct Publisher<'a, 'scope, 'env> {
    request: &'a RunRequest<'a>,
    counters: &'a RunCounters<'a>,
    stager: &'a Stager<'scope, 'env>,
    /// Whether the store supports preconditions natively.
    conditional: bool,
    /// Set before the first write attempt, since a failed write may have been applied.
    wrote: AtomicBool,
}

impl Publisher<'_, '_, '_> {
    fn table(&self, mut table: PreparedTable) -> Result<(), RunError> {
        let mut next = table.next.clone();
        let mut state = table.state.clone();
        let mark = table.publication.intent.take();
        let marked = mark.is_some();
        if let Some(mark) = mark {
            let base = table.old.clone();
            let mut during = base.unwrap_or_else(|| Manifest {
                schema: next.schema.clone(),
                ..Manifest::new(&next.table, &next.fingerprint, &next.layout)
            });
            during.publishing = Some(mark);
            state = self.put_manifest(&during, &state)?;
            let mut tags = table.publication.skipped.clone();
            let sync = || self.request.store.sync(table.publication.puts.len()).map_err(store_error);
            sync()?;
            self.put_files(&table, &next, &mut tags)?;
            sync()?;
            failpoint::reach("publish::before_deletes");
            self.delete(&table.publication.deletes)?;
            set_tags(&mut next, tags);
            self.verify(&next)?;
        } else {
            set_tags(&mut next, table.publication.skipped.clone());
        }
        let same = |old: &Manifest| Manifest { fence: next.fence, ..old.clone() } == next;
        if marked || !table.old.as_ref().is_some_and(same) {
            self.put_manifest(&next, &state)?;
        }
        Ok(())
    }

    /// Checked before every write. Once publishing has begun, a run can't be cancelled.
    fn may_write(&self) -> Result<(), RunError> {
        unless_stopped(self.request.observer.check())?;
        self.wrote.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn put_manifest(&self, manifest: &Manifest, state: &ManifestState) -> Result<ManifestState, RunError> {
        self.request.lease.remaining().map_err(|lost| store_error(lost.into()))?;
        let precondition = match state {
            ManifestState::Absent => Precondition::IfNoneMatch,
            ManifestState::Present(Some(etag)) => Precondition::IfMatch(etag.clone()),
            ManifestState::Present(None) => Precondition::None,
        };
        let options = WriteOptions::leased(self.request.lease).with(precondition);
        let key = manifest_key(self.request.slug(), &manifest.table);
        unless_stopped(self.request.observer.confirm())?;
        self.may_write()?;
        let meta = self.request.store.put(Bucket::Pipelines, &key, &manifest.to_json(), &options);
        Ok(ManifestState::Present(meta.map_err(store_error)?.etag))
    }

    fn put_files(
        &self,
        table: &PreparedTable,
        next: &Manifest,
        tags: &mut BTreeMap<String, Option<String>>,
    ) -> Result<(), RunError> {
        let files: BTreeMap<&str, &FileEntry> = next.files().map(|f| (f.key.as_str(), f)).collect();
        let puts = &table.publication.puts;
        let done = AtomicUsize::new(0);
        let name = table.name();
        let mut left: BTreeMap<&str, AtomicUsize> = BTreeMap::new();
        for partition in puts.iter().filter_map(|key| partition_of(name, key)) {
            *left.entry(partition).or_default().get_mut() += 1;
        }
        let put = |key: &&String| {
            let entry = files.get(key.as_str()).copied();
            let meta = self.put_file(table, key, entry.map(|f| f.sha256.as_str()))?;
            let expected = entry.map(|f| f.size).unwrap_or_default();
            if meta.size != expected {
                let found = format!("expected {expected} bytes, found {} after writing", meta.size);
                return Err(unverified(key, &found));
            }
            if done.fetch_add(1, Ordering::Relaxed) + 1 < puts.len() {
                failpoint::reach("publish::between_puts");
            }
            let left = partition_of(name, key).and_then(|partition| left.get(partition));
            if left.is_some_and(|left| left.fetch_sub(1, Ordering::Relaxed) == 1) {
                self.counters.partitions_written(1);
            }
            Ok(((*key).clone(), meta.etag.map(|e| e.0)))
        };
        if !self.request.store.is_remote() {
            tags.extend(parallel_map(puts, PARALLEL_PUTS_MAX, |key| put(&key))?);
            return Ok(());
        }
        let is_small = |key: &&String| files.get(key.as_str()).is_some_and(|f| f.size <= SMALL_BYTES_MAX);
        let (small, large): (Vec<&String>, Vec<&String>) = puts.iter().partition(is_small);
        tags.extend(parallel_map(&large, PARALLEL_PUTS_MAX, put)?);
        tags.extend(parallel_map(&small, PARALLEL_SMALL_PUTS_MAX, put)?);
        Ok(())
    }

    fn put_file(&self, table: &PreparedTable, key: &str, sha256: Option<&str>) -> Result<ObjectMeta, RunError> {
        let precondition = match table.output.get(key) {
            _ if !self.conditional => Precondition::None,
            None => Precondition::IfNoneMatch,
            Some(listed) => listed.etag.clone().map_or(Precondition::None, |etag| Precondition::IfMatch(ETag(etag))),
        };
        let options =
            WriteOptions { sha256, defer_sync: true, ..WriteOptions::leased(self.request.lease).with(precondition) };
        let Some(file) = table.made.get(key) else {
            return Err(RunError::new(RunErrorCode::Internal, format!("no file was built for `{key}`")).path(key));
        };
        let full_key = self.full_key(key);
        let staged = self.stager.take(file);
        self.may_write()?;
        failpoint::reach("publish::checked");
        let put = match staged {
            Some(staged) => staged.put(&options),
            None => self.request.store.put_file(Bucket::Warehouse, &full_key, file, &options),
        };
        put.map_err(store_error)
    }

    fn delete(&self, keys: &[String]) -> Result<(), RunError> {
        if keys.is_empty() {
            return Ok(());
        }
        let keys: Vec<String> = keys.iter().map(|key| self.full_key(key)).collect();
        let options = WriteOptions::leased(self.request.lease);
        self.may_write()?;
        self.request.store.delete(Bucket::Warehouse, &keys, &options).map_err(store_error)
    }

    /// Compares the whole table with a new listing.
    fn verify(&self, next: &Manifest) -> Result<(), RunError> {
        let mut listed: Listing = output::list(self.request, &next.table)?;
        for file in next.files() {
            match listed.remove(&file.key) {
                None => return Err(unverified(&self.full_key(&file.key), "it is missing")),
                Some(found) if found.matches(file.size, file.etag.as_deref()) => {}
                Some(found) => {
                    let found = format!(
                        "expected {} bytes with tag {:?}, found {} bytes with tag {:?}",
                        file.size, file.etag, found.size, found.etag
                    );
                    return Err(unverified(&self.full_key(&file.key), &found));
                }
            }
        }
        match listed.keys().next() {
            None => Ok(()),
            Some(key) => Err(unverified(&self.full_key(key), "it is not a file of the table")),
        }
    }

    fn dropped(&self, tables: &[DroppedTable]) -> Result<(), RunError> {
        for table in tables {
            self.may_write()?;
            dropped_tables::delete(self.request, table)?;
        }
        Ok(())
    }

    fn full_key(&self, key: &str) -> String {
        format!("{}{key}", pipeline_prefix(self.request.slug()))
    }
}

fn unless_stopped(asked: Result<(), Stop>) -> Result<(), RunError> {
    match asked {
        Ok(()) | Err(Stop::Cancelled) => Ok(()),
        Err(stop @ (Stop::LeaseLost | Stop::WorkerStopping)) => Err(failure::stopped(stop)),
    }
}

/// Sets the ETags of files that were written or skipped; other files keep theirs.
fn set_tags(next: &mut Manifest, mut tags: BTreeMap<String, Option<String>>) {
    let files = next.partitions.values_mut().flat_map(|p| &mut p.files).chain(next.rejects.values_mut());
    for file in files {
        if let Some(tag) = tags.remove(&file.key) {
            file.etag = tag;
        }
    }
}

fn unverified(key: &str, found: &str) -> RunError {
    RunError::new(RunErrorCode::VerificationFailed, format!("`{key}` is not as published: {found}")).path(key)
}
