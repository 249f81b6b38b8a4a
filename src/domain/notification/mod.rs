//! Notifications, and their delivery.
//!
//! [`incident`] decides when a condition is notified, repeated or withdrawn.

pub mod incident;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::job::JobId;
use super::limits::{NOTIFICATION_TEXT_CHARS_MAX, NOTIFICATION_TITLE_CHARS_MAX};
use super::name::Slug;
use super::pipeline::NotifyEvent;
use super::text::is_bidi_control;

/// The events of notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NotificationEvent {
    /// A job failed after its last attempt.
    RunFailed,
    /// A condition with a notification is over.
    Recovered,
    /// A run rejected rows.
    RowsRejected,
    /// Files have columns that the config doesn't.
    Drift,
    /// A table got no rows for longer than its `freshness`.
    SourceSilent,
    /// A run makes no progress, or jobs can't run.
    JobStuck,
    /// The disk of a worker's scratch folder is nearly full.
    DiskNearlyFull,
    /// Sent on request.
    Test,
}

impl NotificationEvent {
    /// The choice in a pipeline's config that turns it off; `None` if it can't be turned off.
    pub fn choice(self) -> Option<NotifyEvent> {
        match self {
            Self::RunFailed => Some(NotifyEvent::RunFailed),
            Self::Recovered => Some(NotifyEvent::Recovered),
            Self::RowsRejected => Some(NotifyEvent::RowsRejected),
            Self::Drift => Some(NotifyEvent::Drift),
            Self::SourceSilent => Some(NotifyEvent::SourceSilent),
            Self::JobStuck => Some(NotifyEvent::JobStuck),
            Self::DiskNearlyFull | Self::Test => None,
        }
    }

    /// The name in configs and payloads.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RunFailed => "run_failed",
            Self::Recovered => "recovered",
            Self::RowsRejected => "rows_rejected",
            Self::Drift => "drift",
            Self::SourceSilent => "source_silent",
            Self::JobStuck => "job_stuck",
            Self::DiskNearlyFull => "disk_nearly_full",
            Self::Test => "test",
        }
    }
}

/// A notification, as stored and as sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Notification {
    /// A UUIDv7; receivers recognize a repeated delivery by it.
    pub id: String,
    pub event: NotificationEvent,
    /// When it happened, the last time for a repeated one.
    #[serde(with = "super::job::record::time")]
    #[schemars(with = "String")]
    pub at: DateTime<Utc>,
    #[schemars(with = "Option<String>")]
    pub pipeline: Option<Slug>,
    pub table: Option<String>,
    #[schemars(with = "Option<String>")]
    pub job_id: Option<JobId>,
    /// One line, at most 200 characters.
    pub title: String,
    /// At most 2,000 characters; may be empty.
    pub text: String,
    /// The page of the UI, if the service's public URL is known.
    pub link: Option<String>,
    /// How often it recurred since the last notification of it.
    pub repeats: u64,
}

impl Notification {
    /// Without pipeline and link. Both texts are cleaned and cut.
    pub fn new(event: NotificationEvent, at: DateTime<Utc>, title: &str, text: &str) -> Self {
        Self {
            id: uuid::Uuid::now_v7().to_string(),
            event,
            at,
            pipeline: None,
            table: None,
            job_id: None,
            title: cleaned(title, NOTIFICATION_TITLE_CHARS_MAX).replace('\n', " "),
            text: cleaned(text, NOTIFICATION_TEXT_CHARS_MAX),
            link: None,
            repeats: 0,
        }
    }

    /// A test.
    pub fn test(at: DateTime<Utc>) -> Self {
        Self::new(NotificationEvent::Test, at, "Test notification", "This is a test: notifications arrive here.")
    }

    /// The texts as lines, for messages to people.
    pub fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.text.lines().map(str::to_owned).collect();
        match self.repeats {
            0 => {}
            1 => lines.push("It happened 1 more time since the last notification.".to_owned()),
            many => lines.push(format!("It happened {many} more times since the last notification.")),
        }
        lines
    }
}

/// Without control characters, except line breaks, and without bidirectional formatting; cut to `chars_max` characters.
fn cleaned(text: &str, chars_max: usize) -> String {
    let visible = text.chars().filter(|c| (*c == '\n' || !c.is_control()) && !is_bidi_control(*c));
    let mut kept: String = visible.clone().take(chars_max).collect();
    if visible.count() > chars_max {
        kept.pop();
        kept.push('…');
    }
    kept.trim().to_owned()
}

/// The kinds of targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TargetKind {
    /// JSON with a signature, by HTTP POST.
    Json,
    Slack,
    Teams,
    Mattermost,
    Ntfy,
    Smtp,
}

impl TargetKind {
    /// The name in URLs and listings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Slack => "slack",
            Self::Teams => "teams",
            Self::Mattermost => "mattermost",
            Self::Ntfy => "ntfy",
            Self::Smtp => "smtp",
        }
    }
}

/// A target as it is shown. Its URL, which holds secrets, is never stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TargetName {
    /// A hash of kind and URL.
    pub id: String,
    pub kind: TargetKind,
    /// Host, and port unless it is the scheme's default.
    pub host: String,
}

/// The state of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryState {
    /// To be sent, perhaps again.
    Pending,
    Sent,
    /// Given up after the last attempt.
    Failed,
}

/// A notification's delivery to one target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Delivery {
    #[serde(flatten)]
    pub target: TargetName,
    pub state: DeliveryState,
    /// Attempts so far.
    pub attempts: u32,
    /// Of the last attempt.
    pub error: Option<String>,
    /// Of the last attempt.
    #[serde(with = "super::job::record::time::option", default)]
    #[schemars(with = "Option<String>")]
    pub at: Option<DateTime<Utc>>,
}

impl Delivery {
    pub fn pending(target: TargetName) -> Self {
        Self { target, state: DeliveryState::Pending, attempts: 0, error: None, at: None }
    }
}

/// A stored notification with its deliveries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotificationRecord {
    #[serde(flatten)]
    pub notification: Notification,
    /// Empty until a worker sends it.
    pub deliveries: Vec<Delivery>,
    /// When it is sent, or sent again; null if no delivery is pending.
    #[serde(with = "super::job::record::time::option", default)]
    #[schemars(with = "Option<String>")]
    pub due_at: Option<DateTime<Utc>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_sanitized_and_truncated() {
        let at = DateTime::from_timestamp(1, 0).unwrap();
        let notification =
            Notification::new(NotificationEvent::RunFailed, at, "a\nb\u{202e}\u{0}c", &"é".repeat(5_000));
        assert_eq!(notification.title, "a bc");
        assert_eq!(notification.text.chars().count(), NOTIFICATION_TEXT_CHARS_MAX);
        assert!(notification.text.ends_with('…'));
    }

    #[test]
    fn record_round_trips() {
        let at = DateTime::from_timestamp(1, 0).unwrap();
        let target = TargetName { id: "t".into(), kind: TargetKind::Slack, host: "h".into() };
        let delivery = Delivery { attempts: 2, at: Some(at), error: Some("e".into()), ..Delivery::pending(target) };
        let notification = Notification {
            pipeline: Some(Slug::parse("p").unwrap()),
            ..Notification::new(NotificationEvent::Drift, at, "title", "text")
        };
        let record = NotificationRecord { notification, deliveries: vec![delivery], due_at: Some(at) };
        let text = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<NotificationRecord>(&text).unwrap(), record, "{text}");
    }

    #[test]
    fn events_have_their_names_in_payloads() {
        use crate::domain::pipeline::document::NotifyDocument;
        for event in [NotificationEvent::RunFailed, NotificationEvent::DiskNearlyFull, NotificationEvent::SourceSilent]
        {
            let name = serde_json::to_value(event).unwrap();
            assert_eq!(name, event.as_str());
            if let Some(choice) = event.choice() {
                assert_eq!(name, serde_json::to_value(NotifyDocument::from(choice)).unwrap());
            }
        }
    }
}
