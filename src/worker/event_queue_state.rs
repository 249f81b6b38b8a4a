//! Outcomes of the event queue's messages, for metrics and `/readyz`.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// A counted outcome of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueOutcome {
    Received,
    /// Its events were recorded.
    Used,
    /// It holds no events of the lake.
    Refused,
    Deleted,
}

impl QueueOutcome {
    pub const ALL: [Self; 4] = [Self::Received, Self::Used, Self::Refused, Self::Deleted];

    /// The name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Received => "received",
            Self::Used => "used",
            Self::Refused => "refused",
            Self::Deleted => "deleted",
        }
    }
}

/// Counters since the start, and the last poll.
#[derive(Debug, Default)]
pub struct EventQueueState {
    counts: [AtomicU64; QueueOutcome::ALL.len()],
    last: Mutex<LastPoll>,
}

/// The outcome of the last poll.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LastPoll {
    /// Why the queue could not be used.
    pub error: Option<String>,
    /// Age of the oldest message of the last batch when it was received, in seconds.
    pub age_s: Option<f64>,
}

impl EventQueueState {
    pub(super) fn add(&self, outcome: QueueOutcome, messages: usize) {
        self.counts[outcome as usize].fetch_add(messages as u64, Ordering::Relaxed);
    }

    pub(super) fn set_error(&self, error: Option<String>) {
        self.last.lock().error = error;
    }

    pub(super) fn set_age(&self, seconds: f64) {
        self.last.lock().age_s = Some(seconds);
    }

    /// Messages since the start, by outcome.
    pub fn counts(&self) -> impl Iterator<Item = (QueueOutcome, u64)> {
        QueueOutcome::ALL.into_iter().zip(self.counts.iter().map(|count| count.load(Ordering::Relaxed)))
    }

    pub fn last(&self) -> LastPoll {
        self.last.lock().clone()
    }
}
