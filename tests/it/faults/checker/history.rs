//! What happened, as those saw it who stood between the workers and the stores.

use std::collections::BTreeSet;

use lakemill::domain::table_log::root::Root;
use lakemill::ports::store::Bucket;

/// A write that the store took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// `pipeline/table`, and the fence of who committed.
    Manifest {
        table: String,
        fence: u64,
    },
    Record {
        job: String,
    },
}

impl Written {
    /// What a write of `bytes` under a key of the pipelines bucket was; `None` for anything else.
    pub fn of(bucket: Bucket, key: &str, bytes: &[u8]) -> Option<Self> {
        let rest = key.strip_prefix("pipelines/").filter(|_| bucket == Bucket::Pipelines)?;
        let (pipeline, rest) = rest.split_once('/')?;
        if let Some(job) = rest.strip_prefix("jobs/").and_then(|name| name.strip_suffix(".json")) {
            return Some(Self::Record { job: job.to_owned() });
        }
        let table = rest.strip_prefix("manifests/")?.strip_suffix(".json")?;
        let root = Root::parse(bytes).ok().filter(|_| !table.contains('/'))?;
        Some(Self::Manifest { table: format!("{pipeline}/{table}"), fence: root.fence })
    }
}

/// Everything that the checker has to know of the past.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// Starts of a job that count, at most.
    pub attempts_max: u32,
    /// Ids of jobs of which somebody was told that they are queued.
    pub accepted: BTreeSet<String>,
    /// Ids of jobs that may be queued: the answer was lost.
    pub perhaps: BTreeSet<String>,
    /// Accepted, but the key-value store lost its data before they ended.
    pub excused: BTreeSet<String>,
    /// In the order in which the store took them.
    pub written: Vec<Written>,
}
