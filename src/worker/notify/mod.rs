//! Notifies people: conditions that begin, last and end become notifications in the key-value store ([`jobs`],
//! [`conditions`]), and any worker delivers them ([`deliver`]).
//!
//! Invariants:
//! - the consequences of a job's end are recorded before the job is acknowledged, under the fence of its run: another
//!   worker that finishes the job for a dead one records it again without effect;
//! - a claimed notification is due again if its worker dies: it may be sent twice then, and is never lost.
//!
//! Must not: do anything in a worker without targets.

pub(super) mod conditions;
pub(super) mod deliver;
pub(super) mod jobs;

use chrono::{DateTime, Utc};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::shared::WorkerShared;
use crate::domain::job::JobId;
use crate::domain::name::Slug;
use crate::domain::notification::Notification;
use crate::domain::notification::incident::{Incident, Pauses};
use crate::ports::kv::KvResult;
use crate::ports::notifications::{ChangeOutcome, IncidentChange};

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
/// Pauses for conditions that every run may show again.
const RUN_PAUSES: Pauses = Pauses { first_ms: 15 * MINUTE_MS, max_ms: 24 * HOUR_MS };
/// Pauses for conditions that last until a person fixes them.
const STATE_PAUSES: Pauses = Pauses { first_ms: HOUR_MS, max_ms: 24 * HOUR_MS };
/// Pauses for silent sources.
const SILENCE_PAUSES: Pauses = Pauses { first_ms: 24 * HOUR_MS, max_ms: 7 * 24 * HOUR_MS };
/// Attempts to change a condition that others change at the same time.
const CHANGES_MAX: usize = 100;

/// A condition, and the run that observed it.
#[derive(Debug, Clone, Copy)]
struct Condition<'a> {
    key: &'a str,
    pauses: Pauses,
    /// Fence of the run; `None` if there is no run.
    fence: Option<u64>,
}

/// The notification of a change, and the one that it withdraws.
#[derive(Debug, Default)]
struct Step {
    add: Option<(Notification, DateTime<Utc>)>,
    withdraw: Option<String>,
}

/// The condition occurs. `subject`: what it is about, if that can change.
fn raise(
    shared: &WorkerShared,
    condition: Condition<'_>,
    subject: &[String],
    notification: &Notification,
) -> KvResult<()> {
    change(shared, condition, true, |incident, now| {
        let plan = incident.raise(now.timestamp_millis(), condition.pauses);
        let mut notification = notification.clone();
        if let Some(id) = plan.replaces {
            notification.id = id;
        }
        // A condition that is checked again and again doesn't happen again.
        notification.repeats = if condition.fence.is_some() { plan.repeats } else { 0 };
        if plan.due_ms > now.timestamp_millis() {
            incident.scheduled_as(&notification.id, plan.due_ms);
        }
        incident.subject = subject.to_vec();
        let due = DateTime::from_timestamp_millis(plan.due_ms).unwrap_or(now);
        Step { add: Some((notification, due)), withdraw: None }
    })
}

/// The condition is over. `recovered` is sent if a notification of the condition was. `is_kept`: whether the fence is
/// stored even if the condition never occurred.
fn end(
    shared: &WorkerShared,
    condition: Condition<'_>,
    is_kept: bool,
    recovered: Option<&Notification>,
) -> KvResult<()> {
    change(shared, condition, is_kept, |incident, now| {
        incident.subject.clear();
        match incident.end(now.timestamp_millis(), condition.pauses) {
            None => Step::default(),
            Some(ended) => Step {
                add: recovered.filter(|_| ended.was_sent).map(|notification| (notification.clone(), now)),
                withdraw: ended.withdrawn,
            },
        }
    })
}

/// The subject of the condition, as of the last notification.
fn subject(shared: &WorkerShared, key: &str) -> KvResult<Vec<String>> {
    let stored = shared.kv.incident(key)?;
    Ok(stored.state.map_or_else(Vec::new, |state| parse(&state).subject))
}

fn change(
    shared: &WorkerShared,
    condition: Condition<'_>,
    is_kept: bool,
    step: impl Fn(&mut Incident, DateTime<Utc>) -> Step,
) -> KvResult<()> {
    for _ in 0..CHANGES_MAX {
        let stored = shared.kv.incident(condition.key)?;
        if stored.state.is_none() && !is_kept {
            return Ok(());
        }
        let before = stored.state.as_deref().map(parse).unwrap_or_default();
        if condition.fence.is_some_and(|fence| fence <= before.fence) {
            return Ok(());
        }
        let mut incident = before.clone();
        incident.fence = condition.fence.unwrap_or(before.fence);
        let Step { add, withdraw } = step(&mut incident, stored.now);
        if incident == before && add.is_none() {
            return Ok(());
        }
        let state = serde_json::to_string(&incident).unwrap_or_default();
        let change = IncidentChange {
            key: condition.key,
            expected: stored.state.as_deref(),
            state: &state,
            add: add.as_ref().map(|(notification, due)| (notification, *due)),
            withdraw: withdraw.as_deref(),
        };
        match shared.kv.change_incident(&change)? {
            ChangeOutcome::Changed => {
                if let Some((notification, due)) = add.as_ref().filter(|(_, due)| *due <= stored.now) {
                    let (event, title) = (notification.event.as_str(), &notification.title);
                    tracing::info!(event, title, %due, id = notification.id, "notification due");
                }
                return Ok(());
            }
            ChangeOutcome::Conflict => {}
            ChangeOutcome::Full => {
                let title = add.map(|(notification, _)| notification.title);
                tracing::warn!(title, "notification dropped: too many are pending; check the targets");
                return Ok(());
            }
        }
    }
    tracing::warn!(condition = condition.key, "notification dropped: its condition keeps changing");
    Ok(())
}

/// A malformed state counts as none.
fn parse(state: &str) -> Incident {
    serde_json::from_str(state).unwrap_or_else(|error| {
        tracing::warn!(%error, "state of a condition is malformed; starting over");
        Incident::default()
    })
}

/// The page of a pipeline, or of one of its jobs, in the UI.
fn link(shared: &WorkerShared, pipeline: &Slug, job: Option<&JobId>) -> Option<String> {
    let page = format!("{}/p/{pipeline}", shared.options.public_url.as_deref()?);
    Some(match job {
        Some(id) => format!("{page}/jobs/{}", utf8_percent_encode(id.as_str(), NON_ALPHANUMERIC)),
        None => page,
    })
}
