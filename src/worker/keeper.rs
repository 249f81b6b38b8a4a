//! Two threads beside each run: one keeps its lock, one shows its progress. They share no connection, so that a slow
//! answer to the one doesn't cost the other its time.

use std::time::Duration;

use super::execute::Run;
use super::retrying::Outage;
use crate::domain::job::Job;
use crate::pipelines::lease::Moment;
use crate::ports::jobs::HeartbeatReply;
use crate::ports::store::Lease;
use crate::runtime::threads::Instant;
use crate::runtime::watchdog::RESPONSE_WAIT_MAX;
use crate::sync::Monitor;

/// Until progress is shown first: a job that is over sooner costs no write for it. That it runs is known by its start.
const TELL_FIRST: Duration = Duration::from_millis(50);
/// How often progress is shown while it moves.
const TELL_EVERY: Duration = Duration::from_millis(500);
/// A wish to cancel is heard after this time at most.
const HEAR_EVERY: Duration = Duration::from_secs(2);
/// Pause after a heartbeat that failed, at most; also a third of the heartbeat.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Rung once, when the run is over.
#[derive(Debug, Default)]
pub(super) struct Bell {
    rung: Monitor<bool>,
}

/// Rings when dropped.
pub(super) struct Ring<'a>(&'a Bell);

impl Drop for Ring<'_> {
    fn drop(&mut self) {
        self.0.rung.update(|rung| *rung = true);
    }
}

impl Bell {
    pub(super) fn ring_at_end(&self) -> Ring<'_> {
        Ring(self)
    }

    /// Waits at most `wait`; true once it was rung.
    pub(super) fn wait(&self, wait: Duration) -> bool {
        self.rung.wait(wait, |rung| rung.then_some(())).is_some()
    }
}

/// Keeps the lock until the bell rings or the lease is lost.
pub(super) fn keep(run: &Run<'_>, bell: &Bell) {
    let lease = run.shared.options.lease;
    let pause = (lease.heartbeat / 3).min(PAUSE_MAX);
    let (job_id, pipeline) = (run.message.job_id.as_str(), run.message.pipeline.as_str());
    let mut outage = Outage::new("the heartbeat of a run");
    let mut wait = lease.heartbeat;
    let watched = run.shared.state.watchdog.watch_short_lived("keeper", lease.lock_ttl + RESPONSE_WAIT_MAX);
    while !watched.waiting(|| bell.wait(wait)) {
        let since = Moment::now(&*run.shared.clock);
        if run.lease.remaining().is_err() {
            tracing::warn!(job_id, pipeline, "the lease could not be prolonged in time; the run stops");
            return;
        }
        run.watch.asked();
        match watched.waiting(|| run.shared.kv.heartbeat(&run.start.lease, lease.lock_ttl)) {
            Ok(beat) => {
                outage.over();
                run.watch.hear(beat, since);
                if beat == HeartbeatReply::Lost {
                    tracing::warn!(job_id, pipeline, "the lock is over or another worker's; the run stops");
                    return;
                }
                wait = lease.heartbeat;
            }
            Err(error) => {
                outage.tell(&error);
                wait = pause;
            }
        }
    }
}

/// Shows the run's progress while it moves, and hears of a wish to cancel, until the bell rings or the lease is lost.
pub(super) fn tell(run: &Run<'_>, bell: &Bell) {
    let mut outage = Outage::new("showing the progress of a run");
    let mut last: Option<(Job, Instant)> = None;
    if bell.wait(TELL_FIRST) {
        return;
    }
    loop {
        let job = run.watch.shown(&run.job);
        if last.as_ref().is_none_or(|(shown, at)| *shown != job || at.elapsed() >= HEAR_EVERY) {
            let since = Moment::now(&*run.shared.clock);
            match run.shared.kv.update_record(&run.start.lease, &job) {
                Ok(HeartbeatReply::Lost) => return run.watch.hear(HeartbeatReply::Lost, since),
                Ok(HeartbeatReply::Held { cancelled }) => {
                    outage.over();
                    if cancelled {
                        run.watch.cancel();
                    }
                    last = Some((job, Instant::now()));
                }
                Err(error) => outage.tell(&error),
            }
        }
        if bell.wait(TELL_EVERY) || run.lease.remaining().is_err() {
            return;
        }
    }
}
