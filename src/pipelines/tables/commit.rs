//! Commits a table.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::delta_checkpoint::checkpoint;
use super::delta_log::{LogChange, LogCommit};
use super::iceberg_log::{self, IcebergCommit};
use super::recover::{delete_intent, delete_objects};
use super::{FoundRoot, TableResult, TableStore};
use crate::domain::layout::{
    manifest_intent_key, manifest_key, manifest_log_key, manifest_retired_key, manifest_root_key, manifest_shard_key,
};
use crate::domain::table_log::root::{Intent, Objects, OwnedFile, Retirement, Root};
use crate::ports::store::{Bucket, ETag, Lease, Precondition, StoreResult, WriteOptions};
use crate::runtime::failpoint;
use crate::sync::parallel_map;

/// Shards written at the same time.
const PARALLEL_PUTS_MAX: usize = 16;
const DELETE_TRIES_MAX: u32 = 3;

/// The new objects of a commit.
pub struct NewObjects<'a, E> {
    /// Shards, by name, with their bytes.
    pub shards: Vec<(String, Vec<u8>)>,
    /// Puts all data files and files of rejected rows; the caller's part, since these may be staged. Called once.
    pub put_files: &'a dyn Fn() -> Result<(), E>,
    /// About how many files that are.
    pub files: usize,
}

/// One commit of a table.
pub struct Commit<'a> {
    pub table: TableStore<'a>,
    pub lease: &'a dyn Lease,
    pub before: &'a FoundRoot,
    /// The next root; `retained` is set by the commit.
    pub next: Root,
    /// Objects that only the current root names, and objects that the run creates.
    pub retired: Objects,
    pub made: Objects,
    /// Keys of files that were made again with the same bytes.
    pub unchanged: BTreeSet<String>,
    /// Files of an earlier commit that the next root names again.
    pub returned: Vec<OwnedFile>,
    /// Whether `retired` stays in the store, with the current root, for readers of the past.
    pub keep_history: bool,
    /// Retained commits that have expired, oldest first.
    pub expired: Vec<Retirement>,
}

impl Commit<'_> {
    /// Writes the objects, then the root, then the version of the Delta log and the Iceberg metadata file, then deletes what
    /// is no longer needed. `confirm` is asked right before each write that can't be taken back: whether the run still holds
    /// its lock.
    ///
    /// # Errors
    /// If the store or the lease fails. Until the root is written, the table is as before; what was written is deleted by
    /// the next run. After it an error is only logged, since the table is published, unless another program wrote to the
    /// Delta log, the Iceberg metadata or its catalog.
    pub fn run<E: From<super::TableError>>(
        mut self,
        mut objects: NewObjects<'_, E>,
        confirm: &dyn Fn() -> Result<(), E>,
    ) -> Result<Root, E> {
        self.retain();
        let log = self.log(&objects.shards)?;
        let iceberg = self.iceberg(&mut objects.shards)?;
        let after = self.plan_deletes()?;
        self.put_intent(&after, log.as_ref(), iceberg.as_ref())?;
        failpoint::reach("commit::after_intent");
        self.put_shards(objects.shards, log.as_ref(), iceberg.as_ref())?;
        self.keep_root()?;
        (objects.put_files)()?;
        self.table.store.sync(objects.files).map_err(super::TableError::from)?;
        failpoint::reach("commit::before_root");
        confirm()?;
        self.put_root().map_err(super::TableError::from)?;
        failpoint::reach("commit::after_root");
        let table = self.table.table;
        let logged = log.map_or(Ok(()), |log| log.put(&self.table, self.lease));
        let logged = logged.and(iceberg.map_or(Ok(()), |iceberg| iceberg.put(&self.table, &self.next, self.lease)));
        match logged {
            Ok(()) => {}
            Err(error) if error.is_foreign_change() => return Err(error.into()),
            Err(error) => {
                tracing::warn!(table, %error, "table published, but not for other engines; the next run does it");
                return Ok(self.next);
            }
        }
        self.clean_up(&after);
        if let Err(error) = checkpoint(&self.table, &self.next, self.lease) {
            tracing::warn!(table, %error, "table published, but its Delta log got no checkpoint; a later run writes one");
        }
        Ok(self.next)
    }

    /// The commit's change of the Delta log.
    fn log(&self, shards: &[(String, Vec<u8>)]) -> TableResult<Option<LogCommit>> {
        let made: Vec<OwnedFile> = self.made.files.iter().chain(&self.returned).cloned().collect();
        let change = LogChange {
            table: self.table,
            before: self.before.readable(),
            next: &self.next,
            made: &made,
            retired: &self.retired.files,
            unchanged: &self.unchanged,
            shards,
        };
        change.commit()
    }

    /// Plans the snapshot of the Iceberg metadata. Adds its objects to those that the commit makes and retires.
    fn iceberg(&mut self, shards: &mut Vec<(String, Vec<u8>)>) -> TableResult<Option<IcebergCommit>> {
        let own = shards.len();
        let planned = iceberg_log::plan(&self.table, self.before.readable(), &mut self.next, shards)?;
        self.made.shards.extend(shards.iter().skip(own).map(|(name, _)| name.clone()));
        if let Some(planned) = &planned {
            self.made.files.extend(planned.made.iter().cloned());
            self.retired.files.extend(planned.retired.iter().cloned());
        }
        Ok(planned)
    }

    /// Deletes what is no longer needed. Until then, readers that list the table see replaced rows and their
    /// replacement, so failed deletes are retried at once. Failures are only logged, since the table is published.
    fn clean_up(&self, after: &Objects) {
        let mut tries = 0;
        loop {
            tries += 1;
            let deleted = delete_objects(&self.table, Some(&self.next), after, self.lease);
            let table = self.table.table;
            match deleted.and_then(|()| delete_intent(&self.table, self.next.fence, self.lease)) {
                Ok(()) => return,
                Err(error) if tries < DELETE_TRIES_MAX && !error.is_lease_lost() => {
                    tracing::warn!(table, %error, "table published, but replaced files not deleted; retrying");
                }
                Err(error) => {
                    tracing::warn!(table, %error, "table published, but replaced files not deleted; the next run deletes them");
                    return;
                }
            }
        }
    }

    /// Whether the current root, and what only it names, is retained.
    fn retains_present(&self) -> bool {
        self.keep_history && self.before.readable().is_some()
    }

    /// Sets which earlier commits the next root retains.
    fn retain(&mut self) {
        let expired: BTreeSet<u64> = self.expired.iter().map(|expired| expired.sequence).collect();
        let retained = self.before.readable().map(|root| root.retained.as_slice()).unwrap_or_default();
        self.next.retained = retained.iter().filter(|one| !expired.contains(&one.sequence)).cloned().collect();
        if self.retains_present() {
            let retirement = Retirement { sequence: self.next.sequence, at: self.next.committed_at.clone() };
            self.next.retained.push(retirement);
        }
    }

    /// Determines the objects to delete after the commit.
    fn plan_deletes(&mut self) -> TableResult<Objects> {
        let mut deletes = Objects::default();
        for expired in &self.expired {
            let objects = self.table.retired(expired)?;
            deletes.files.extend(objects.files);
            deletes.shards.extend(objects.shards);
            deletes.commits.push(expired.sequence);
        }
        if self.retains_present() {
            self.made.commits.push(self.next.sequence);
        } else {
            deletes.files.append(&mut self.retired.files);
            deletes.shards.append(&mut self.retired.shards);
        }
        Ok(deletes)
    }

    fn put_intent(&self, after: &Objects, log: Option<&LogCommit>, iceberg: Option<&IcebergCommit>) -> TableResult<()> {
        let intent = Intent {
            job_id: self.next.job_id.clone(),
            fence: self.next.fence,
            sequence: self.next.sequence,
            made: self.made.clone(),
            retired: after.clone(),
            log: log.map(|log| log.step),
            iceberg: iceberg.map(|iceberg| iceberg.step),
        };
        let json = serde_json::to_vec(&intent).unwrap_or_default();
        let key = manifest_intent_key(self.table.slug, self.table.table, self.next.fence);
        self.table.store.put(Bucket::Pipelines, &key, &json, &WriteOptions::leased(self.lease))?;
        Ok(())
    }

    /// Writes the shards, the staged version of the Delta log, and the objects that the Iceberg metadata file will
    /// name.
    fn put_shards(
        &self,
        shards: Vec<(String, Vec<u8>)>,
        log: Option<&LogCommit>,
        iceberg: Option<&IcebergCommit>,
    ) -> TableResult<()> {
        let (slug, table) = (self.table.slug, self.table.table);
        let shards = shards.into_iter().map(|(name, bytes)| (manifest_shard_key(slug, table, &name), bytes));
        let staged = log.map(|log| (manifest_log_key(slug, table, self.next.fence), log.staged()));
        let manifest = shards.chain(staged).map(|(key, bytes)| (Bucket::Pipelines, key, Cow::Owned(bytes)));
        let metadata = iceberg.iter().flat_map(|iceberg| &iceberg.objects);
        let metadata = metadata.map(|(key, bytes)| (Bucket::Warehouse, key.clone(), Cow::Borrowed(bytes.as_slice())));
        let objects: Vec<(Bucket, String, Cow<'_, [u8]>)> = manifest.chain(metadata).collect();
        let put = |(bucket, key, bytes): &(Bucket, String, Cow<'_, [u8]>)| -> StoreResult<()> {
            let options = WriteOptions { defer_sync: true, ..WriteOptions::leased(self.lease) };
            self.table.store.put(*bucket, key, bytes, &options).map(|_| ())
        };
        let at_a_time = if self.table.store.is_remote() { PARALLEL_PUTS_MAX } else { 1 };
        parallel_map(&objects, at_a_time, put)?;
        Ok(())
    }

    /// Keeps the current root and the list of what this commit retires.
    fn keep_root(&self) -> TableResult<()> {
        let (true, Some(root)) = (self.keep_history, self.before.readable()) else { return Ok(()) };
        let (slug, table) = (self.table.slug, self.table.table);
        let retired = serde_json::to_vec(&self.retired).unwrap_or_default();
        let kept = [
            (manifest_root_key(slug, table, root.sequence), root.to_json()),
            (manifest_retired_key(slug, table, self.next.sequence), retired),
        ];
        for (key, json) in kept {
            let options = WriteOptions { defer_sync: true, ..WriteOptions::leased(self.lease) };
            self.table.store.put(Bucket::Pipelines, &key, &json, &options)?;
        }
        Ok(())
    }

    fn put_root(&self) -> StoreResult<Option<ETag>> {
        let precondition = match self.before {
            FoundRoot::Absent => Precondition::IfNoneMatch,
            FoundRoot::Readable(stored) => stored.etag.clone().map_or(Precondition::None, Precondition::IfMatch),
            FoundRoot::Unusable { etag, .. } => etag.clone().map_or(Precondition::None, Precondition::IfMatch),
        };
        let key = manifest_key(self.table.slug, self.table.table);
        let options = WriteOptions::leased(self.lease).with(precondition);
        Ok(self.table.store.put(Bucket::Pipelines, &key, &self.next.to_json(), &options)?.etag)
    }
}
