//! Where notifications are sent: a webhook, a chat, a mail server.

use std::time::Duration;

use crate::domain::notification::{Notification, TargetName};

/// Why a notification was not accepted. The message holds no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct DeliveryError {
    pub message: String,
    /// As requested by the target, if at all.
    pub retry_after: Option<Duration>,
}

/// A target. Each call ends within a minute.
pub trait NotificationTarget: Send + Sync {
    fn name(&self) -> &TargetName;

    /// # Errors
    /// The target can't be reached in time, or rejected the notification.
    fn send(&self, notification: &Notification) -> Result<(), DeliveryError>;
}
