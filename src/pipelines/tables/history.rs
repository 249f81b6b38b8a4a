//! Retained commits of a table: reading them, and deleting those that have expired.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::recover::delete_objects;
use super::{StoredRoot, TableResult, TableStore};
use crate::domain::layout::{manifest_key, manifest_retired_key};
use crate::domain::table_log::history::{AsOf, Version, is_committed_by};
use crate::domain::table_log::root::{Objects, Retirement, Root};
use crate::ports::store::{Bucket, Lease, Precondition, WriteOptions};
use crate::sync::parallel_map;

/// Parallel reads.
const PARALLEL_READS_MAX: usize = 32;

/// A version of a table that can't be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotRetained {
    /// The oldest version that can be read, with its time.
    pub oldest: u64,
    pub committed_at: String,
}

impl TableStore<'_> {
    /// The root of a version of the table. `present`: its current root.
    ///
    /// # Errors
    /// If the store fails or the root can't be used.
    pub fn root_as_of(&self, present: &Root, as_of: AsOf) -> TableResult<Result<Root, NotRetained>> {
        let found = match present.version(as_of) {
            Version::Present => Some(present.clone()),
            Version::Earlier(sequence) => self.earlier_root(sequence)?,
            Version::EarlierIfInTime(sequence) => self.earlier_root(sequence)?.filter(|root| match as_of {
                AsOf::Time(asked) => is_committed_by(root, asked),
                AsOf::Sequence(_) => true,
            }),
            Version::Gone => None,
        };
        match found {
            Some(root) => Ok(Ok(root)),
            None => {
                let oldest = present.earlier().next().map(|oldest| self.earlier_root(oldest)).transpose()?.flatten();
                let oldest = oldest.as_ref().unwrap_or(present);
                Ok(Err(NotRetained { oldest: oldest.sequence, committed_at: oldest.committed_at.clone() }))
            }
        }
    }

    /// The roots of commits that can be read, newest first, without the first `skip`, at most `limit`.
    ///
    /// # Errors
    /// If the store fails or a root can't be used.
    pub fn commits(&self, present: &Root, skip: usize, limit: usize) -> TableResult<Vec<Root>> {
        let all = std::iter::once(present.sequence).chain(present.earlier().rev());
        let wanted: Vec<u64> = all.skip(skip).take(limit).collect();
        let roots = parallel_map(&wanted, PARALLEL_READS_MAX, |sequence| match *sequence == present.sequence {
            true => Ok(Some(present.clone())),
            false => self.earlier_root(*sequence),
        })?;
        Ok(roots.into_iter().flatten().collect())
    }

    /// All objects of earlier commits that `root`, the current one, retains.
    ///
    /// # Errors
    /// If the store fails, or a list of them can't be read.
    pub fn retained(&self, root: &Root) -> TableResult<Objects> {
        let lists = parallel_map(&root.retained, PARALLEL_READS_MAX, |retired| self.retired(retired))?;
        let mut retained = Objects::default();
        for (retired, objects) in root.retained.iter().zip(lists) {
            retained.files.extend(objects.files);
            retained.shards.extend(objects.shards);
            retained.commits.push(retired.sequence);
        }
        Ok(retained)
    }

    /// The objects that a commit retired; empty if its list was deleted.
    pub(super) fn retired(&self, retired: &Retirement) -> TableResult<Objects> {
        let key = manifest_retired_key(self.slug, self.table, retired.sequence);
        match self.small(&key)? {
            Some((json, _)) => self.json(key, &json),
            None => Ok(Objects::default()),
        }
    }

    /// Leaves out objects that earlier commits need which `root` retains: a file that a commit retired is retained when a
    /// later one recreates it.
    pub(super) fn without_retained<'o>(&self, root: &Root, objects: &'o Objects) -> TableResult<Cow<'o, Objects>> {
        if root.retained.is_empty() || (objects.files.is_empty() && objects.shards.is_empty()) {
            return Ok(Cow::Borrowed(objects));
        }
        let mut objects = objects.clone();
        let retained = self.retained(root)?;
        let files: BTreeSet<&str> = retained.files.iter().map(|file| file.key.as_str()).collect();
        let shards: BTreeSet<&str> = retained.shards.iter().map(String::as_str).collect();
        objects.files.retain(|file| !files.contains(file.key.as_str()));
        objects.shards.retain(|shard| !shards.contains(shard.as_str()));
        Ok(Cow::Owned(objects))
    }
}

/// Deletes retained commits of a table that doesn't change otherwise, then takes them off its root. If that is interrupted,
/// the next call does the rest. `expired`: the oldest ones; their readers get an error.
///
/// # Errors
/// If the store or the lease fails.
pub fn expire(
    table: &TableStore<'_>,
    present: &StoredRoot,
    expired: &[Retirement],
    lease: &dyn Lease,
) -> TableResult<()> {
    let mut root = present.root.clone();
    root.retained.retain(|retired| !expired.contains(retired));
    let mut objects = Objects::default();
    for list in parallel_map(expired, PARALLEL_READS_MAX, |retired| table.retired(retired))? {
        objects.files.extend(list.files);
        objects.shards.extend(list.shards);
    }
    delete_objects(table, Some(&root), &objects, lease)?;
    // Lists are deleted last: the next call needs them to continue.
    let commits = expired.iter().map(|retired| retired.sequence).collect();
    delete_objects(table, Some(&root), &Objects { commits, ..Objects::default() }, lease)?;
    let precondition = present.etag.clone().map_or(Precondition::None, Precondition::IfMatch);
    let options = WriteOptions::leased(lease).with(precondition);
    table.store.put(Bucket::Pipelines, &manifest_key(table.slug, table.table), &root.to_json(), &options)?;
    Ok(())
}
