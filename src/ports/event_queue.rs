//! A queue that holds events of new objects, such as SQS.
//!
//! Contract: a received message is hidden for some time, and comes back unless it is deleted. Messages may come in any
//! order and more than once. A call ends within [`QUEUE_CALL_TIME_MAX`].

use std::time::Duration;

use chrono::{DateTime, Utc};

/// Longest time of a call.
pub const QUEUE_CALL_TIME_MAX: Duration = Duration::from_secs(60);

/// A received message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueMessage {
    pub id: String,
    /// Deletes it; valid until it is received again.
    pub receipt: String,
    pub body: String,
    /// How often it was received, this time included.
    pub receives: u32,
    pub sent_at: Option<DateTime<Utc>>,
}

/// The state of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueState {
    /// Number of receives after which a message moves to the dead-letter queue; `None`: the queue has none.
    pub receives_max: Option<u32>,
    /// About how many messages wait.
    pub waiting: u64,
}

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the event queue `{queue}`: {reason}")]
pub struct QueueError {
    pub queue: String,
    pub reason: String,
}

/// A queue of events.
pub trait EventQueue: Send + Sync {
    /// For logs.
    fn name(&self) -> &str;

    /// Waits for messages, for `wait` at most (up to 20 s), and returns some; none if there are none.
    ///
    /// # Errors
    /// If the queue can't be reached, or refuses.
    fn receive(&self, wait: Duration) -> Result<Vec<QueueMessage>, QueueError>;

    /// Deletes messages, and returns why some were not deleted.
    ///
    /// # Errors
    /// If the queue can't be reached, or refuses; then none or some were deleted.
    fn delete(&self, messages: &[QueueMessage]) -> Result<Vec<String>, QueueError>;

    /// # Errors
    /// If the queue can't be reached, or refuses.
    fn state(&self) -> Result<QueueState, QueueError>;
}
