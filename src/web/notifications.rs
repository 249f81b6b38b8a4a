//! Lists sent notifications, and sends a test. Workers deliver; this service knows only the names of targets.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use super::access::{number_query, optional_query};
use super::endpoint::Endpoint;
use super::failure::from_kv;
use crate::domain::notification::{Notification, NotificationRecord, TargetName};
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::ports::notifications::Notifications;
use crate::runtime::Clock;

/// Page sizes.
const PAGE_DEFAULT: u64 = 50;
const PAGE_MAX: u64 = 200;
/// Longest id, in bytes.
const ID_BYTES_MAX: usize = 64;

/// The service.
pub struct NotificationService {
    pub kv: Arc<dyn Notifications>,
    pub clock: Arc<dyn Clock>,
}

pub(super) fn endpoints() -> Vec<Endpoint<NotificationService>> {
    vec![
        Endpoint::get("/api/notifications", "notifications.list", "Lists notifications, newest first", list)
            .query::<u64>("limit", "Page size: 1 to 200, 50 by default.")
            .query::<String>("before", "`next` of the previous page.")
            .response::<NotificationPage>(200, "a page of notifications, with the targets of the workers"),
        Endpoint::post(
            "/api/notifications/test",
            "notifications.test",
            "Sends a test notification to all targets",
            test,
        )
        .response::<NotificationRecord>(202, "the notification, which a worker will send")
        .errors(&[ErrorCode::NoTargets]),
    ]
}

/// A page of notifications.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Notifications")]
struct NotificationPage {
    /// The targets of the workers that run now.
    targets: Vec<TargetName>,
    notifications: Vec<NotificationRecord>,
    /// `before` of the next page; null on the last page.
    next: Option<String>,
}

fn list(service: &NotificationService, request: &mut Request) -> Result<Response, ApiError> {
    let limit = number_query(request, "limit", 1..=PAGE_MAX)?.unwrap_or(PAGE_DEFAULT);
    let before = optional_query(request, "before")?;
    let is_id = |id: &str| id.len() <= ID_BYTES_MAX && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    if before.is_some_and(|before| before.is_empty() || !is_id(before)) {
        return Err(ApiError::new(ErrorCode::InvalidRequest, "before: expected `next` of the previous page"));
    }
    let limit = usize::try_from(limit).unwrap_or_default();
    // One more shows whether there is another page.
    let mut notifications = service.kv.notifications(before, limit + 1).map_err(from_kv)?;
    let more = notifications.len() > limit;
    notifications.truncate(limit);
    let next = notifications.last().filter(|_| more).map(|last| last.notification.id.clone());
    let targets = service.kv.notification_targets().map_err(from_kv)?;
    Ok(Response::json(200, &NotificationPage { targets, notifications, next }))
}

fn test(service: &NotificationService, _: &mut Request) -> Result<Response, ApiError> {
    if service.kv.notification_targets().map_err(from_kv)?.is_empty() {
        let message = "no running worker has targets for notifications: set SVC_NOTIFY_URL of the workers";
        return Err(ApiError::new(ErrorCode::NoTargets, message));
    }
    let notification = Notification::test(service.clock.now());
    if !service.kv.add_notification(&notification).map_err(from_kv)? {
        return Err(ApiError::new(ErrorCode::Overloaded, "too many notifications are pending"));
    }
    let due_at = Some(notification.at);
    Ok(Response::json(202, &NotificationRecord { notification, deliveries: Vec::new(), due_at }))
}
