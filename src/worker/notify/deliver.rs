//! Claims due notifications and sends them.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::domain::limits::{
    DELIVERY_ATTEMPTS_MAX, DELIVERY_PAUSE_FIRST_MS, DELIVERY_PAUSE_MS_MAX, NOTIFICATION_TARGETS_MAX,
};
use crate::domain::notification::{Delivery, DeliveryState, TargetName};
use crate::ports::NotificationTarget;
use crate::ports::kv::KvResult;
use crate::ports::notification_target::DeliveryError;
use crate::ports::notifications::{AfterDelivery, ClaimedNotification};
use crate::runtime::threads::Instant;
use crate::runtime::{WatchedThread, failpoint};
use crate::sync::parallel_map;
use crate::worker::lifetime::WorkSource;
use crate::worker::retry::OutageLog;
use crate::worker::shared::WorkerShared;
use crate::worker::stopping::Phase;

/// How often the key-value store is asked for due notifications.
const POLL: Duration = Duration::from_secs(1);
/// Notifications claimed at once: they are sent one after the other while the claim lasts.
const CLAIMED_MAX: usize = 1;
/// How long a claim lasts: longer than a target takes.
const CLAIM_TTL: Duration = Duration::from_secs(90);
/// Longest time of a delivery, for the watchdog.
pub const DELIVERY_TIME_MAX: Duration = Duration::from_secs(120);
/// How often the names of the targets are stored, and how long they stay.
const NAMES_INTERVAL: Duration = Duration::from_secs(30);
const NAMES_TTL: Duration = Duration::from_secs(120);

/// Delivers until the worker stops.
pub fn run(shared: &WorkerShared, watched: &WatchedThread) {
    let mut outage = OutageLog::new("delivering notifications");
    let mut named: Option<Instant> = None;
    loop {
        let delivered = watched.waiting(|| {
            if named.is_none_or(|at| at.elapsed() >= NAMES_INTERVAL) {
                let names: Vec<TargetName> = shared.targets.iter().map(|target| target.name().clone()).collect();
                shared.kv.set_notification_targets(&names, NAMES_TTL)?;
                named = Some(Instant::now());
            }
            due(shared)
        });
        let wait = match delivered {
            Ok(more) => {
                outage.recovered();
                if !more {
                    shared.sources.set_empty(WorkSource::Notifications);
                }
                if more { Duration::ZERO } else { POLL }
            }
            Err(error) => {
                outage.failed(&error);
                POLL
            }
        };
        if shared.stopping.wait_for(Phase::Drain, wait) {
            return;
        }
        watched.ping();
    }
}

/// Delivers notifications that are due. Returns whether there were any.
fn due(shared: &WorkerShared) -> KvResult<bool> {
    let claimed = shared.kv.claim_notifications(CLAIMED_MAX, claim_ttl())?;
    for claim in &claimed {
        failpoint::reach("notify::claimed");
        deliver(shared, claim)?;
    }
    Ok(!claimed.is_empty())
}

fn claim_ttl() -> Duration {
    failpoint::millis("notify::claim_ttl_ms").unwrap_or(CLAIM_TTL)
}

/// Sends to all pending targets at once, and records each delivery when it ends.
fn deliver(shared: &WorkerShared, claim: &ClaimedNotification) -> KvResult<()> {
    let mut known = claim.deliveries.clone();
    if known.is_empty() {
        known = shared.targets.iter().map(|target| Delivery::pending(target.name().clone())).collect();
    }
    let pending: Vec<usize> = (0..known.len()).filter(|at| known[*at].state == DeliveryState::Pending).collect();
    let (deliveries, asked) = (Mutex::new(known), Mutex::new(Duration::ZERO));
    parallel_map(&pending, NOTIFICATION_TARGETS_MAX, |at| {
        let target = deliveries.lock()[*at].target.clone();
        let outcome = send(shared, claim, &target);
        failpoint::reach("notify::sent");
        let mut deliveries = deliveries.lock();
        let error = outcome.err();
        if let Some(pause) = error.as_ref().and_then(|error| error.retry_after) {
            let mut asked = asked.lock();
            *asked = pause.max(*asked);
        }
        record_outcome(shared, claim, &mut deliveries[*at], error.map(|error| error.message));
        // A lost claim shows when all are done.
        shared.kv.record_deliveries(claim, &deliveries, AfterDelivery::Continue).map(drop)
    })?;
    let deliveries = deliveries.into_inner();
    let attempts = deliveries.iter().filter(|one| one.state == DeliveryState::Pending).map(|one| one.attempts).min();
    let then = attempts.map_or(AfterDelivery::Done, |attempts| {
        AfterDelivery::Retry(asked.into_inner().max(Duration::from_millis(pause_ms(attempts))))
    });
    if !shared.kv.record_deliveries(claim, &deliveries, then)? {
        tracing::warn!(id = claim.notification.id, "claim on a notification lost; it may be sent twice");
    }
    Ok(())
}

fn send(shared: &WorkerShared, claim: &ClaimedNotification, name: &TargetName) -> Result<(), DeliveryError> {
    let target: Option<&Arc<dyn NotificationTarget>> = shared.targets.iter().find(|target| target.name().id == name.id);
    match target {
        Some(target) => target.send(&claim.notification),
        None => {
            let message = "this worker doesn't have the target: all workers need the same SVC_NOTIFY_URL".to_owned();
            Err(DeliveryError { message, retry_after: None })
        }
    }
}

fn record_outcome(shared: &WorkerShared, claim: &ClaimedNotification, delivery: &mut Delivery, error: Option<String>) {
    delivery.attempts += 1;
    delivery.at = Some(shared.clock.now());
    let (kind, host, id) = (delivery.target.kind.as_str(), &delivery.target.host, &claim.notification.id);
    let attempt = delivery.attempts;
    delivery.state = match &error {
        None => {
            tracing::info!(id, kind, host, event = claim.notification.event.as_str(), attempt, "notification sent");
            DeliveryState::Sent
        }
        Some(error) if attempt >= DELIVERY_ATTEMPTS_MAX => {
            tracing::warn!(id, kind, host, attempt, error, "notification not delivered; given up");
            DeliveryState::Failed
        }
        Some(error) => {
            tracing::warn!(id, kind, host, attempt, error, "notification not delivered; will retry");
            DeliveryState::Pending
        }
    };
    delivery.error = error;
}

/// The pause after this many attempts, in ms.
fn pause_ms(attempts: u32) -> u64 {
    let doubled = DELIVERY_PAUSE_FIRST_MS.saturating_mul(1 << attempts.saturating_sub(1).min(32));
    doubled.min(DELIVERY_PAUSE_MS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_take_a_day_at_most() {
        assert_eq!([1, 2, 3].map(pause_ms), [5_000, 10_000, 20_000]);
        assert_eq!(pause_ms(u32::MAX), DELIVERY_PAUSE_MS_MAX);
        let total: u64 = (1..DELIVERY_ATTEMPTS_MAX).map(pause_ms).sum();
        assert!((20 * 3_600_000..24 * 3_600_000).contains(&total), "{total}");
    }
}
