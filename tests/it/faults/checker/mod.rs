//! Finds violations in a history and a final state. It knows the accepted jobs, the writes in order, and the final
//! state, but not the code that led to them.

mod found;
mod history;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use lakemill::domain::job::JobStatus;

pub use found::{BuiltTables, Found, clean_store, records};
pub use history::{History, Written};

/// A violation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Violation {
    /// An accepted job has no terminal record.
    NoRecord { job: String },
    /// A record is not terminal.
    NotTerminal { job: String },
    /// A record was written more than once.
    RecordedAgain { job: String, times: usize },
    /// There is a record of a job that nobody requested.
    Unasked { job: String },
    /// A job had too many attempts.
    TooManyAttempts { job: String, attempts: u32 },
    /// A run wrote to a table after a later run had begun writing.
    Overlap { table: String, fence: u64, after: u64 },
    /// The table differs from the state after its last writer.
    NotOfHighestFence { table: String, fence: u64, highest: u64 },
    /// A shard of the table's manifest is missing or differs from the root's entry.
    Unreadable { table: String },
    /// An intent remains.
    IntentLeft { table: String },
    /// An object of a clean run is missing or has other bytes.
    Differs { key: String },
    /// An object that a clean run doesn't create exists.
    Surplus { key: String },
    /// Rows of a source are not accounted for.
    RowsLost { source: String, expected: u64, found: Option<u64> },
    /// The queue is not empty at the end.
    LeftInQueue { what: &'static str, count: u64 },
    /// A job failed for a reason that no injected fault causes.
    FailedOtherwise { job: String, code: String },
    /// A debounce window caused no job, or more than one.
    JobsOfWindow { pipeline: String, jobs: u64 },
    /// Jobs of a steady stream of events did not follow the debounce interval.
    DebounceIntervalMissed { after_ms: Vec<i64> },
    /// A round ended before it could be checked.
    Unchecked { scenario: String },
}

impl Violation {
    /// Something accepted was lost.
    pub fn is_loss(&self) -> bool {
        matches!(self, Self::NoRecord { .. } | Self::RowsLost { .. } | Self::JobsOfWindow { jobs: 0, .. })
    }

    /// Something was done twice, or without a request.
    pub fn is_duplicate(&self) -> bool {
        match self {
            Self::RecordedAgain { .. } | Self::Unasked { .. } => true,
            Self::JobsOfWindow { jobs, .. } => *jobs > 1,
            _ => false,
        }
    }
}

/// All violations, in order.
pub fn violations(history: &History, found: &Found) -> Vec<Violation> {
    let mut all: Vec<Violation> = Vec::new();
    all.extend(jobs(history, found));
    all.extend(commits(history, found));
    all.extend(found.made.values().flat_map(tables));
    all.extend(queue(found));
    all.sort();
    all
}

fn jobs(history: &History, found: &Found) -> Vec<Violation> {
    let mut all = Vec::new();
    for job in history.accepted.difference(&history.excused) {
        if !found.records.contains_key(job) {
            all.push(Violation::NoRecord { job: job.clone() });
        }
    }
    for (job, record) in &found.records {
        if !history.accepted.contains(job) && !history.perhaps.contains(job) {
            all.push(Violation::Unasked { job: job.clone() });
        }
        match record.status {
            JobStatus::Completed | JobStatus::Failed => {}
            JobStatus::Queued | JobStatus::Running => all.push(Violation::NotTerminal { job: job.clone() }),
        }
        if record.attempt > history.attempts_max {
            all.push(Violation::TooManyAttempts { job: job.clone(), attempts: record.attempt });
        }
    }
    let mut recorded: BTreeMap<&str, usize> = BTreeMap::new();
    for written in &history.written {
        if let Written::Record { job } = written {
            *recorded.entry(job).or_default() += 1;
        }
    }
    let again = recorded.into_iter().filter(|(_, times)| *times > 1);
    all.extend(again.map(|(job, times)| Violation::RecordedAgain { job: job.to_owned(), times }));
    all
}

/// The fence of a table's writers never decreases.
fn commits(history: &History, found: &Found) -> Vec<Violation> {
    let mut highest: BTreeMap<&str, u64> = BTreeMap::new();
    let mut all = Vec::new();
    for written in &history.written {
        let Written::Manifest { table, fence } = written else { continue };
        let last = highest.entry(table).or_default();
        if fence < last {
            all.push(Violation::Overlap { table: table.clone(), fence: *fence, after: *last });
        }
        *last = (*last).max(*fence);
    }
    for (table, manifest) in found.made.values().flat_map(|made| &made.manifests) {
        let highest = highest.get(table.as_str()).copied().unwrap_or(0);
        let fence = manifest.root.fence;
        if fence < highest {
            all.push(Violation::NotOfHighestFence { table: table.clone(), fence, highest });
        }
    }
    all
}

/// Compares the tables of a pipeline with a clean run of its lake.
fn tables(made: &BuiltTables) -> Vec<Violation> {
    let mut all = Vec::new();
    all.extend(made.unreadable.iter().map(|table| Violation::Unreadable { table: table.clone() }));
    all.extend(made.intents.iter().map(|table| Violation::IntentLeft { table: table.clone() }));
    for (key, bytes) in &made.expected {
        if made.objects.get(key) != Some(bytes) {
            all.push(Violation::Differs { key: key.clone() });
        }
    }
    let known: BTreeSet<&String> = made.expected.keys().collect();
    let surplus = made.objects.keys().filter(|key| !known.contains(key));
    all.extend(surplus.map(|key| Violation::Surplus { key: key.clone() }));
    for (source, expected) in &made.lake {
        let entries = made.manifests.values().filter_map(|manifest| manifest.sources.get(source));
        let found =
            entries.map(|entry| (entry.rows_read, entry.rows_written + entry.rows_rejected + entry.rows_filtered));
        let found = found.map(|(read, reported)| if read == reported { read } else { reported }).max();
        if found != Some(*expected) {
            all.push(Violation::RowsLost { source: source.clone(), expected: *expected, found });
        }
    }
    all
}

fn queue(found: &Found) -> Vec<Violation> {
    let counts = found.counts;
    let places = [
        ("stream", counts.stream),
        ("pending", counts.pending),
        ("waiting", counts.waiting),
        ("requested", counts.requested),
        ("windows", counts.windows),
        ("dead", counts.dead_letters),
        ("active", found.active),
    ];
    let left = places.into_iter().filter(|(_, count)| *count > 0);
    left.map(|(what, count)| Violation::LeftInQueue { what, count }).collect()
}
