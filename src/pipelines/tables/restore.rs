//! Makes an earlier commit of a table the current one, as a new commit.
//!
//! The new root names the shards and files of the earlier one, which are still in the store; nothing is copied. The next
//! run compares the table with the whole lake, and brings it up to date.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::compare::retired;
use super::{Commit, FoundRoot, NewObjects, StoredRoot, TableError, TableResult, TableStore, recover};
use crate::domain::table_log::root::{IcebergTable, Objects, Root};
use crate::ports::store::Lease;
use crate::runtime::rfc3339;

/// Restores `earlier`, a retained commit of the table. The present commit is retained from now on. The caller holds the
/// pipeline's lock. `now`: by the store's clock.
///
/// # Errors
/// If the store or the lease fails, or a shard can't be read. Then the table is as before.
pub fn restore(
    table: TableStore<'_>,
    present: &StoredRoot,
    earlier: Root,
    lease: &dyn Lease,
    now: DateTime<Utc>,
) -> TableResult<Root> {
    recover(&table, Some(&present.root), lease)?;
    let retired = self::retired(&table, &present.root, &earlier)?;
    let delta = present.root.delta.as_ref().map(|log| log.next(&earlier.schema.columns));
    // Only commits with Iceberg metadata tell which column a partition is made from. Without it, the next run recreates
    // the metadata.
    let location = table.location()?;
    let own = present.root.iceberg.as_ref().filter(|iceberg| iceberg.continues(&location));
    let iceberg = own.zip(earlier.iceberg.as_ref()).map(|(present, earlier)| IcebergTable {
        partitions: earlier.partitions.clone(),
        state: None,
        ..present.clone()
    });
    let returned = match delta {
        Some(_) => self::retired(&table, &earlier, &present.root)?.files,
        None => Vec::new(),
    };
    let next = Root {
        sequence: present.root.sequence + 1,
        fence: lease.fence(),
        committed_at: rfc3339(now),
        restored: Some(earlier.sequence),
        delta,
        iceberg,
        retained: Vec::new(),
        ..earlier
    };
    let commit = Commit {
        table,
        lease,
        before: &FoundRoot::Readable(Box::new(present.clone())),
        next,
        retired,
        made: Objects::default(),
        unchanged: BTreeSet::new(),
        returned,
        keep_history: true,
        // None by its time, but as many as the next commit leaves no room for.
        expired: present.root.expired(Duration::MAX, now),
    };
    commit.run::<TableError>(NewObjects { shards: Vec::new(), put_files: &|| Ok(()), files: 0 }, &|| Ok(()))
}
