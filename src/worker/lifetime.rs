//! When a worker ends, and the sources of work that must be empty before.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use crate::runtime::threads::Instant;

/// When a worker ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lifetime {
    /// When it is stopped.
    #[default]
    UntilStopped,
    /// Also once nothing is left to do.
    UntilDrained {
        /// Whether all pipelines are compared with the lake first.
        compare: bool,
    },
}

impl Lifetime {
    pub(super) fn ends(self) -> bool {
        match self {
            Self::UntilStopped => false,
            Self::UntilDrained { .. } => true,
        }
    }
}

/// A source of new work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum WorkSource {
    /// The comparison at the start.
    Comparison,
    EventQueue,
    /// Notifications that are due.
    Notifications,
}

/// When each source was last found empty.
#[derive(Debug, Default)]
pub(super) struct WorkSources(Mutex<BTreeMap<WorkSource, Option<Instant>>>);

impl WorkSources {
    /// Registers a source, which a thread watches.
    pub(super) fn expect(&self, source: WorkSource) {
        self.0.lock().insert(source, None);
    }

    /// The source is empty now, and all its work is recorded.
    pub(super) fn set_empty(&self, source: WorkSource) {
        self.0.lock().insert(source, Some(Instant::now()));
    }

    /// Whether each source was found empty after `since`; for the comparison, at any time.
    pub(super) fn are_empty_since(&self, since: Instant) -> bool {
        let age = since.elapsed();
        self.0.lock().iter().all(|(source, at)| match source {
            WorkSource::Comparison => at.is_some(),
            WorkSource::EventQueue | WorkSource::Notifications => at.is_some_and(|at| at.elapsed() < age),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn every_source_must_be_empty_after_the_worker_became_idle() {
        let sources = WorkSources::default();
        let start = Instant::now();
        assert!(sources.are_empty_since(start), "without sources");
        sources.expect(WorkSource::Comparison);
        sources.expect(WorkSource::EventQueue);
        sources.set_empty(WorkSource::EventQueue);
        assert!(!sources.are_empty_since(start), "not compared yet");
        sources.set_empty(WorkSource::Comparison);
        let idle = Instant::now();
        assert!(sources.are_empty_since(start) && !sources.are_empty_since(idle), "found empty before it was idle");
        std::thread::sleep(Duration::from_millis(1));
        sources.set_empty(WorkSource::EventQueue);
        assert!(sources.are_empty_since(idle), "one comparison is enough");
    }
}
