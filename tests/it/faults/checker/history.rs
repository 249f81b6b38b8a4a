//! The history of requests and writes, recorded between the workers and the stores.

use std::collections::BTreeSet;

use lakemill::domain::table_log::root::Root;
use lakemill::ports::store::Bucket;

/// A write that the store accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// `pipeline/table`, and the committer's fence.
    Manifest {
        table: String,
        fence: u64,
    },
    Record {
        job: String,
    },
}

impl Written {
    /// Classifies a write of `bytes` under a key of the pipelines bucket; `None` for anything else.
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

/// The checker's input.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// Maximum number of counted attempts of a job.
    pub attempts_max: u32,
    /// Ids of jobs that were acknowledged as queued.
    pub accepted: BTreeSet<String>,
    /// Ids of jobs that may be queued: the response was lost.
    pub perhaps: BTreeSet<String>,
    /// Jobs that were accepted, but lost with the key-value store's data before they ended.
    pub excused: BTreeSet<String>,
    /// In the order in which the store accepted them.
    pub written: Vec<Written>,
}
