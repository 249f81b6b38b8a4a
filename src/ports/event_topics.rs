//! Topics that send events by HTTP, as SNS does.
//!
//! Contract: a call ends within [`TOPIC_CALL_TIME_MAX`]; a message that isn't proven to come from a permitted topic is
//! refused.

use std::time::Duration;

use serde::Deserialize;

/// Longest time of a call.
pub const TOPIC_CALL_TIME_MAX: Duration = Duration::from_secs(20);

/// The kinds of message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum TopicMessageKind {
    /// A message of a publisher.
    Notification,
    /// Asks whether the receiver wants messages of the topic.
    SubscriptionConfirmation,
    /// The receiver gets no more messages of the topic.
    UnsubscribeConfirmation,
}

impl TopicMessageKind {
    /// The name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Notification => "Notification",
            Self::SubscriptionConfirmation => "SubscriptionConfirmation",
            Self::UnsubscribeConfirmation => "UnsubscribeConfirmation",
        }
    }
}

/// A message, as sent.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct TopicMessage {
    #[serde(rename = "Type")]
    pub kind: TopicMessageKind,
    pub topic_arn: String,
    /// The text that was published.
    pub message: String,
    #[serde(default)]
    pub message_id: String,
    pub subject: Option<String>,
    #[serde(default)]
    pub timestamp: String,
    /// Confirms a subscription.
    pub token: Option<String>,
    #[serde(rename = "SubscribeURL")]
    pub subscribe_url: Option<String>,
    #[serde(default)]
    pub signature_version: String,
    /// Base64.
    #[serde(default)]
    pub signature: String,
    #[serde(rename = "SigningCertURL", default)]
    pub signing_cert_url: String,
}

/// Why a message is not used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TopicError {
    /// It doesn't come from a permitted topic, or can't be confirmed.
    #[error("{reason}")]
    Refused { reason: String },
    /// The topic's service can't be asked now.
    #[error("{reason}")]
    Unavailable { reason: String },
}

/// The topics that may send events.
pub trait EventTopics: Send + Sync {
    /// Checks that a message comes from a permitted topic.
    ///
    /// # Errors
    /// Why it is not used.
    fn verify(&self, message: &TopicMessage) -> Result<(), TopicError>;

    /// Confirms the subscription of a verified [`TopicMessageKind::SubscriptionConfirmation`]. Safe to repeat.
    ///
    /// # Errors
    /// Why it couldn't be confirmed.
    fn confirm(&self, message: &TopicMessage) -> Result<(), TopicError>;
}
