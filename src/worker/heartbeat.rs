//! Two threads of each run: one renews its lock, one reports its progress. They share no connection, so that a slow call
//! of one doesn't delay the other.

use std::time::Duration;

use super::notify;
use super::retry::OutageLog;
use super::run::Run;
use crate::domain::job::Job;
use crate::pipelines::lease::Moment;
use crate::ports::jobs::HeartbeatReply;
use crate::ports::store::Lease;
use crate::runtime::threads::Instant;
use crate::runtime::watchdog::RESPONSE_WAIT_MAX;
use crate::sync::Monitor;

/// Delay of the first report: a shorter job needs none, since its start shows that it runs.
const REPORT_FIRST: Duration = Duration::from_millis(50);
/// Interval of progress reports while progress changes.
const REPORT_EVERY: Duration = Duration::from_millis(500);
/// Interval of reports without a change: a report also receives cancellations.
const REPORT_UNCHANGED_EVERY: Duration = Duration::from_secs(2);
/// Longest pause after a failed heartbeat; otherwise a third of the interval.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Stops the threads of a run.
#[derive(Debug, Default)]
pub(super) struct ShutdownSignal {
    sent: Monitor<bool>,
}

/// Sends the signal when dropped.
pub(super) struct ShutdownGuard<'a>(&'a ShutdownSignal);

impl Drop for ShutdownGuard<'_> {
    fn drop(&mut self) {
        self.0.sent.update(|sent| *sent = true);
    }
}

impl ShutdownSignal {
    pub(super) fn guard(&self) -> ShutdownGuard<'_> {
        ShutdownGuard(self)
    }

    /// Waits up to `wait`; true once it was sent.
    pub(super) fn wait(&self, wait: Duration) -> bool {
        self.sent.wait(wait, |sent| sent.then_some(())).is_some()
    }
}

/// Renews the lock until shutdown or until the lease is lost.
pub(super) fn heartbeat(run: &Run<'_>, shutdown: &ShutdownSignal) {
    let lease = run.shared.options.lease;
    let pause = (lease.heartbeat / 3).min(PAUSE_MAX);
    let (job_id, pipeline) = (run.message.job_id.as_str(), run.message.pipeline.as_str());
    let mut outage = OutageLog::new("heartbeat of a run");
    let mut wait = lease.heartbeat;
    let watched = run.shared.state.watchdog.watch_short_lived("heartbeat", lease.lock_ttl + RESPONSE_WAIT_MAX);
    while !watched.waiting(|| shutdown.wait(wait)) {
        let since = Moment::now(&*run.shared.clock);
        if run.lease.remaining().is_err() {
            tracing::warn!(job_id, pipeline, "lease not renewed in time; run stopped");
            return;
        }
        run.watch.set_heartbeat_pending();
        match watched.waiting(|| run.shared.kv.heartbeat(&run.start.lease, lease.lock_ttl)) {
            Ok(beat) => {
                outage.recovered();
                run.watch.on_heartbeat(beat, since);
                if beat == HeartbeatReply::Lost {
                    tracing::warn!(job_id, pipeline, "lock expired or taken over; run stopped");
                    return;
                }
                wait = lease.heartbeat;
            }
            Err(error) => {
                outage.failed(&error);
                wait = pause;
            }
        }
    }
}

/// Reports the run's progress and receives cancellations, until shutdown or until the lease is lost.
pub(super) fn report_progress(run: &Run<'_>, shutdown: &ShutdownSignal) {
    let mut outage = OutageLog::new("reporting progress of a run");
    let mut last: Option<(Job, Instant)> = None;
    let mut stuck = notify::conditions::StuckRun::new(run);
    if shutdown.wait(REPORT_FIRST) {
        return;
    }
    loop {
        let job = run.watch.reported(&run.job);
        stuck.check(&job);
        if last.as_ref().is_none_or(|(reported, at)| *reported != job || at.elapsed() >= REPORT_UNCHANGED_EVERY) {
            let since = Moment::now(&*run.shared.clock);
            match run.shared.kv.update_record(&run.start.lease, &job) {
                Ok(HeartbeatReply::Lost) => return run.watch.on_heartbeat(HeartbeatReply::Lost, since),
                Ok(HeartbeatReply::Held { cancelled }) => {
                    outage.recovered();
                    if cancelled {
                        run.watch.cancel();
                    }
                    last = Some((job, Instant::now()));
                }
                Err(error) => outage.failed(&error),
            }
        }
        // A batch of expressions can take minutes.
        if run.watch.must_stop().is_err()
            && let Some(expressions) = &run.expressions
        {
            expressions.cancel();
        }
        if shutdown.wait(REPORT_EVERY) || run.lease.remaining().is_err() {
            return;
        }
    }
}
