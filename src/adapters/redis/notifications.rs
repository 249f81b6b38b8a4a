//! Pending notifications, and the state of conditions.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::connection::Repeat;
use super::error::malformed;
use super::keys::{self, NOTIFICATION, NOTIFICATION_TARGETS, NOTIFICATIONS, NOTIFICATIONS_DUE};
use super::kv::RedisKv;
use super::reply::OperationReply;
use super::scripts::{self, Call};
use crate::domain::limits::{INCIDENT_TTL_MS, NOTIFICATIONS_MAX};
use crate::domain::notification::{Delivery, Notification, NotificationRecord, TargetName};
use crate::ports::kv::KvResult;
use crate::ports::notifications::{
    AfterDelivery, ChangeOutcome, ClaimedNotification, IncidentChange, Notifications, StoredIncident,
};

impl Notifications for RedisKv {
    fn incident(&self, key: &str) -> KvResult<StoredIncident> {
        let call = Call::new(&scripts::NOTIFY_INCIDENT, [&keys::incident(key)]).arg(self.now());
        let [now, state] = call.run(&self.pool)?.parts()?;
        Ok(StoredIncident { state: state.optional_text()?, now: now.time()? })
    }

    fn change_incident(&self, change: &IncidentChange<'_>) -> KvResult<ChangeOutcome> {
        let call = Call::new(&scripts::NOTIFY_ADD, [&keys::incident(change.key), NOTIFICATIONS_DUE, NOTIFICATIONS])
            .arg(self.now())
            .arg("condition")
            .arg(change.expected.unwrap_or_default())
            .arg(change.state)
            .arg(INCIDENT_TTL_MS);
        let (notification, due) = change.add.unzip();
        self.add(call, notification, due, change.withdraw)
    }

    fn add_notification(&self, notification: &Notification) -> KvResult<bool> {
        let call = Call::new(&scripts::NOTIFY_ADD, [&keys::incident(""), NOTIFICATIONS_DUE, NOTIFICATIONS])
            .arg(self.now())
            .args(["none", "", "", ""].map(str::to_owned));
        Ok(self.add(call, Some(notification), None, None)? == ChangeOutcome::Changed)
    }

    fn claim_notifications(&self, limit: usize, ttl: Duration) -> KvResult<Vec<ClaimedNotification>> {
        let token = uuid::Uuid::new_v4().to_string();
        let call = Call::new(&scripts::NOTIFY_CLAIM, [NOTIFICATIONS_DUE, NOTIFICATIONS]).arg(self.now());
        let reply = call.arg(limit.min(NOTIFICATIONS_MAX)).ms(ttl).arg(&token).arg(NOTIFICATION).run(&self.pool)?;
        let mut claimed = Vec::new();
        for item in reply.list()? {
            let [id, body, deliveries] = item.parts()?;
            match (decoded(&body), decoded_list(&deliveries)) {
                (Ok(notification), Ok(deliveries)) => {
                    claimed.push(ClaimedNotification { notification, deliveries, token: token.clone() });
                }
                (Err(error), _) | (_, Err(error)) => {
                    tracing::warn!(%error, "notification is unreadable; deleted");
                    let mut remove = ::redis::cmd("ZREM");
                    remove.arg(NOTIFICATIONS_DUE).arg(id.text()?);
                    self.pool.request("notify_claim", Repeat::Idempotent, &remove)?;
                }
            }
        }
        Ok(claimed)
    }

    fn record_deliveries(
        &self,
        claim: &ClaimedNotification,
        deliveries: &[Delivery],
        then: AfterDelivery,
    ) -> KvResult<bool> {
        let id = &claim.notification.id;
        let call = Call::new(&scripts::NOTIFY_RECORD, [NOTIFICATIONS_DUE, &keys::notification(id)]).arg(self.now());
        let call = call.arg(id).arg(&claim.token).arg(encoded(deliveries));
        let call = match then {
            AfterDelivery::Continue => call.arg("continue").arg(0),
            AfterDelivery::Retry(pause) => call.arg("retry").ms(pause),
            AfterDelivery::Done => call.arg("done").arg(0),
        };
        call.run(&self.pool)?.flag()
    }

    fn notifications(&self, before: Option<&str>, limit: usize) -> KvResult<Vec<NotificationRecord>> {
        let call = Call::new(&scripts::NOTIFY_LIST, [NOTIFICATIONS_DUE, NOTIFICATIONS]);
        let reply = call.arg(before.unwrap_or_default()).arg(limit.min(NOTIFICATIONS_MAX)).arg(NOTIFICATION);
        let mut listed = Vec::new();
        for item in reply.run(&self.pool)?.list()? {
            let [_, body, deliveries, due] = item.parts()?;
            let due_at = if due.text()?.is_empty() { None } else { Some(due.time()?) };
            match (decoded(&body), decoded_list(&deliveries)) {
                (Ok(notification), Ok(deliveries)) => {
                    listed.push(NotificationRecord { notification, deliveries, due_at });
                }
                (Err(error), _) | (_, Err(error)) => tracing::warn!(%error, "notification is unreadable; skipped"),
            }
        }
        Ok(listed)
    }

    fn set_notification_targets(&self, targets: &[TargetName], ttl: Duration) -> KvResult<()> {
        let mut set = ::redis::cmd("SET");
        set.arg(NOTIFICATION_TARGETS).arg(encoded(targets)).arg("PX").arg(ttl.as_millis().max(1).to_string());
        self.pool.request("set_notification_targets", Repeat::Idempotent, &set)?;
        Ok(())
    }

    fn notification_targets(&self) -> KvResult<Vec<TargetName>> {
        let mut get = ::redis::cmd("GET");
        get.arg(NOTIFICATION_TARGETS);
        let reply = self.pool.request("notification_targets", Repeat::Idempotent, &get)?;
        let reply = OperationReply::new("notification_targets", reply);
        match reply.optional_text()? {
            None => Ok(Vec::new()),
            Some(_) => decoded(&reply),
        }
    }
}

impl RedisKv {
    /// Adds the last arguments of the call, and runs it.
    fn add(
        &self,
        call: Call,
        notification: Option<&Notification>,
        due: Option<DateTime<Utc>>,
        withdraw: Option<&str>,
    ) -> KvResult<ChangeOutcome> {
        let call = match notification {
            Some(notification) => call.arg(&notification.id).arg(encoded(notification)),
            None => call.arg("").arg(""),
        };
        let call = call.arg(due.map_or(0, |due| due.timestamp_millis())).arg(withdraw.unwrap_or_default());
        let reply = call.arg(NOTIFICATION).arg(NOTIFICATIONS_MAX).run(&self.pool)?;
        match reply.text()?.as_str() {
            "changed" => Ok(ChangeOutcome::Changed),
            "conflict" => Ok(ChangeOutcome::Conflict),
            "full" => Ok(ChangeOutcome::Full),
            _ => Err(reply.unexpected("`changed`, `conflict` or `full`")),
        }
    }
}

/// Types of the domain always have a form as JSON.
fn encoded<T: serde::Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn decoded<T: serde::de::DeserializeOwned>(reply: &OperationReply) -> KvResult<T> {
    let text = reply.text()?;
    serde_json::from_str(&text).map_err(|_| malformed(reply.operation(), "a notification as JSON", &text))
}

fn decoded_list(reply: &OperationReply) -> KvResult<Vec<Delivery>> {
    if reply.text()?.is_empty() { Ok(Vec::new()) } else { decoded(reply) }
}
