//! Pending notifications, and the state of conditions.

use std::time::Duration;

use rusqlite::{OptionalExtension as _, params};

use crate::domain::limits::{INCIDENT_TTL_MS, NOTIFICATIONS_MAX};
use crate::domain::notification::{Delivery, Notification, NotificationRecord, TargetName};
use crate::ports::kv::KvResult;
use crate::ports::notifications::{
    AfterDelivery, ChangeOutcome, ClaimedNotification, IncidentChange, Notifications, StoredIncident,
};

use super::db::KvTransaction;
use super::error::{StepError, StepResult};
use super::kv::SqliteKv;
use super::units::{after, sql_count, time};

impl Notifications for SqliteKv {
    fn incident(&self, key: &str) -> KvResult<StoredIncident> {
        self.db.read("read a condition", |step| Ok(StoredIncident { state: state_of(step, key)?, now: time(step.now) }))
    }

    fn change_incident(&self, change: &IncidentChange<'_>) -> KvResult<ChangeOutcome> {
        self.db.write("change a condition", |step| {
            step.delete_expired("incidents", "key")?;
            if state_of(step, change.key)?.as_deref() != change.expected {
                return Ok(ChangeOutcome::Conflict);
            }
            if let Some((notification, due)) = change.add
                && !add(step, notification, due.timestamp_millis())?
            {
                return Ok(ChangeOutcome::Full);
            }
            if let Some(id) = change.withdraw {
                step.run("DELETE FROM notifications WHERE id = ?1 AND token IS NULL", [id])?;
            }
            let expires = after(step.now, Duration::from_millis(INCIDENT_TTL_MS));
            step.run(
                "INSERT OR REPLACE INTO incidents (key, state, expires_ms) VALUES (?1, ?2, ?3)",
                params![change.key, change.state, expires],
            )?;
            Ok(ChangeOutcome::Changed)
        })
    }

    fn add_notification(&self, notification: &Notification) -> KvResult<bool> {
        self.db.write("add a notification", |step| add(step, notification, step.now))
    }

    fn claim_notifications(&self, limit: usize, ttl: Duration) -> KvResult<Vec<ClaimedNotification>> {
        // Usually nothing is due, and no write is needed.
        let any: bool = self.db.read("check for notifications", |step| {
            let sql = "SELECT EXISTS (SELECT 1 FROM notifications WHERE due_ms <= ?1)";
            Ok(step.sql(sql)?.query_row([step.now], |row| row.get(0))?)
        })?;
        if !any {
            return Ok(Vec::new());
        }
        self.db.write("claim notifications", |step| {
            let sql = "SELECT id, body, deliveries FROM notifications WHERE due_ms <= ?1 ORDER BY due_ms, id LIMIT ?2";
            let mut statement = step.sql(sql)?;
            let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
            let rows = statement.query_map(params![step.now, sql_count(limit)], read)?;
            let found: Vec<(String, String, Option<String>)> = rows.collect::<Result<_, _>>()?;
            let token = uuid::Uuid::new_v4().to_string();
            let mut claimed = Vec::with_capacity(found.len());
            for (id, body, deliveries) in found {
                match (decoded(&body), decoded_list(deliveries.as_deref())) {
                    (Ok(notification), Ok(deliveries)) => {
                        let until = after(step.now, ttl);
                        let sql = "UPDATE notifications SET token = ?2, due_ms = ?3 WHERE id = ?1";
                        step.run(sql, params![id, token, until])?;
                        claimed.push(ClaimedNotification { notification, deliveries, token: token.clone() });
                    }
                    (Err(_), _) | (_, Err(_)) => {
                        tracing::warn!(id, "notification is unreadable; deleted");
                        step.run("DELETE FROM notifications WHERE id = ?1", [id])?;
                    }
                }
            }
            Ok(claimed)
        })
    }

    fn record_deliveries(
        &self,
        claim: &ClaimedNotification,
        deliveries: &[Delivery],
        then: AfterDelivery,
    ) -> KvResult<bool> {
        self.db.write("record deliveries", |step| {
            let (id, token, deliveries) = (&claim.notification.id, &claim.token, encoded(deliveries));
            let changed = match then {
                AfterDelivery::Continue => step.run(
                    "UPDATE notifications SET deliveries = ?3 WHERE id = ?1 AND token = ?2",
                    params![id, token, deliveries],
                )?,
                AfterDelivery::Retry(pause) => step.run(
                    "UPDATE notifications SET deliveries = ?3, due_ms = ?4 WHERE id = ?1 AND token = ?2",
                    params![id, token, deliveries, after(step.now, pause)],
                )?,
                AfterDelivery::Done => step.run(
                    "UPDATE notifications SET deliveries = ?3, due_ms = NULL WHERE id = ?1 AND token = ?2",
                    params![id, token, deliveries],
                )?,
            };
            Ok(changed > 0)
        })
    }

    fn notifications(&self, before: Option<&str>, limit: usize) -> KvResult<Vec<NotificationRecord>> {
        self.db.read("list notifications", |step| {
            let sql = "SELECT body, deliveries, due_ms FROM notifications WHERE ?1 IS NULL OR id < ?1
                       ORDER BY id DESC LIMIT ?2";
            let mut statement = step.sql(sql)?;
            let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
            let rows = statement.query_map(params![before, sql_count(limit)], read)?;
            let found: Vec<(String, Option<String>, Option<i64>)> = rows.collect::<Result<_, _>>()?;
            found
                .into_iter()
                .map(|(body, deliveries, due)| {
                    let deliveries = decoded_list(deliveries.as_deref())?;
                    Ok(NotificationRecord { notification: decoded(&body)?, deliveries, due_at: due.map(time) })
                })
                .collect()
        })
    }

    fn set_notification_targets(&self, targets: &[TargetName], ttl: Duration) -> KvResult<()> {
        self.db.write("set notification targets", |step| {
            step.run(
                "INSERT OR REPLACE INTO notification_targets (id, names, expires_ms) VALUES (1, ?1, ?2)",
                params![encoded(targets), after(step.now, ttl)],
            )?;
            Ok(())
        })
    }

    fn notification_targets(&self) -> KvResult<Vec<TargetName>> {
        self.db.read("read notification targets", |step| {
            let sql = "SELECT names FROM notification_targets WHERE expires_ms > ?1";
            let names: Option<String> = step.sql(sql)?.query_row([step.now], |row| row.get(0)).optional()?;
            names.map_or_else(|| Ok(Vec::new()), |names| decoded(&names))
        })
    }
}

fn state_of(step: &KvTransaction<'_>, key: &str) -> StepResult<Option<String>> {
    let sql = "SELECT state FROM incidents WHERE key = ?1 AND expires_ms > ?2";
    Ok(step.sql(sql)?.query_row(params![key, step.now], |row| row.get(0)).optional()?)
}

/// Adds a notification, or replaces one that wasn't claimed. False if all that are kept are pending.
fn add(step: &KvTransaction<'_>, notification: &Notification, due: i64) -> StepResult<bool> {
    let id = &notification.id;
    let exists: bool =
        step.sql("SELECT EXISTS (SELECT 1 FROM notifications WHERE id = ?1)")?.query_row([id], |row| row.get(0))?;
    let kept: i64 = step.sql("SELECT count(*) FROM notifications")?.query_row([], |row| row.get(0))?;
    if !exists && kept >= sql_count(NOTIFICATIONS_MAX) {
        let oldest = "DELETE FROM notifications WHERE id =
                          (SELECT id FROM notifications WHERE due_ms IS NULL ORDER BY id LIMIT 1)";
        if step.run(oldest, [])? == 0 {
            return Ok(false);
        }
    }
    step.run(
        "INSERT INTO notifications (id, body, due_ms) VALUES (?1, ?2, ?3)
         ON CONFLICT (id) DO UPDATE SET body = excluded.body, due_ms = excluded.due_ms WHERE token IS NULL",
        params![id, encoded(notification), due],
    )?;
    Ok(true)
}

/// Types of the domain always have a form as JSON.
fn encoded<T: serde::Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn decoded<T: serde::de::DeserializeOwned>(text: &str) -> StepResult<T> {
    let found = || crate::domain::text::clipped(text);
    serde_json::from_str(text).map_err(|_| StepError::Malformed { expected: "a notification as JSON", found: found() })
}

fn decoded_list(text: Option<&str>) -> StepResult<Vec<Delivery>> {
    text.map_or_else(|| Ok(Vec::new()), decoded)
}
