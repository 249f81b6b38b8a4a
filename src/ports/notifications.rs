//! Pending notifications, and the state of the conditions that caused them.
//!
//! Contract, tested on every backend by one suite. Each method is one atomic step. Times are the key-value store's own.
//! - A condition's state changes together with its notification: a process that dies leaves both or none.
//! - A notification is due until all its deliveries are sent or abandoned. A due one is claimed for a time by one process at
//!   a time; if that process dies, another one claims it after that time.
//! - At most [`NOTIFICATIONS_MAX`] are kept. Those without a pending delivery are dropped first, the oldest first; if there
//!   is none, no notification is added.
//!
//! [`NOTIFICATIONS_MAX`]: crate::domain::limits::NOTIFICATIONS_MAX

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::kv_error::KvResult;
use crate::domain::notification::{Delivery, Notification, NotificationRecord, TargetName};

/// The state of a condition, as its last change stored it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredIncident {
    /// Opaque; `None` if there is none, or it has expired.
    pub state: Option<String>,
    /// The store's time.
    pub now: DateTime<Utc>,
}

/// A change of a condition's state.
#[derive(Debug, Clone, Copy)]
pub struct IncidentChange<'a> {
    /// The condition.
    pub key: &'a str,
    /// The state that was read.
    pub expected: Option<&'a str>,
    /// The new state; expires [`INCIDENT_TTL_MS`](crate::domain::limits::INCIDENT_TTL_MS) after its last change.
    pub state: &'a str,
    /// A notification to add, and when it is due. One with the same id is replaced, unless it was claimed.
    pub add: Option<(&'a Notification, DateTime<Utc>)>,
    /// The id of a notification to delete, unless it was claimed.
    pub withdraw: Option<&'a str>,
}

/// Result of [`Notifications::change_incident`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeOutcome {
    Changed,
    /// The state is not the expected one; nothing changed.
    Conflict,
    /// The notification can't be added, since all that are kept are pending; nothing changed.
    Full,
}

/// A notification that this process has to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedNotification {
    pub notification: Notification,
    /// As last recorded.
    pub deliveries: Vec<Delivery>,
    /// Identifies the claim.
    pub token: String,
}

/// The state of a notification after [`Notifications::record_deliveries`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterDelivery {
    /// The claim continues.
    Continue,
    /// Due again after this time, for any process.
    Retry(Duration),
    /// Nothing is pending.
    Done,
}

/// Notifications, shared by all processes.
pub trait Notifications: Send + Sync {
    fn incident(&self, key: &str) -> KvResult<StoredIncident>;

    fn change_incident(&self, change: &IncidentChange<'_>) -> KvResult<ChangeOutcome>;

    /// Adds a notification that is due at once; false if it can't be added, since all that are kept are pending.
    fn add_notification(&self, notification: &Notification) -> KvResult<bool>;

    /// Claims up to `limit` due notifications for `ttl`, the longest due first.
    fn claim_notifications(&self, limit: usize, ttl: Duration) -> KvResult<Vec<ClaimedNotification>>;

    /// Records the state of the deliveries; false if the claim has expired and another process has claimed it.
    fn record_deliveries(
        &self,
        claim: &ClaimedNotification,
        deliveries: &[Delivery],
        then: AfterDelivery,
    ) -> KvResult<bool>;

    /// Up to `limit` notifications, newest first, with ids below `before`.
    fn notifications(&self, before: Option<&str>, limit: usize) -> KvResult<Vec<NotificationRecord>>;

    /// The targets of the workers; expires after `ttl`.
    fn set_notification_targets(&self, targets: &[TargetName], ttl: Duration) -> KvResult<()>;

    fn notification_targets(&self) -> KvResult<Vec<TargetName>>;
}
