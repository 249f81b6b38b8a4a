//! One entry of the stream, from its claim to its acknowledgement.

use std::sync::Arc;
use std::time::Duration;

use super::finish::{Finish, Outcome};
use super::keeper::{self, Bell, Ring};
use super::observe::Watch;
use super::retrying::persist;
use super::state::Happened;
use super::stopping::Phase;
use super::{Dependency, Shared, attempt};
use crate::domain::job::{Arrival, Job, JobMessage, RunError, RunErrorCode};
use crate::pipelines::lease::{Moment, RunLease};
use crate::ports::jobs::{Entry, StartOutcome, StartRequest, StartedJob};
use crate::runtime::failpoint;
use crate::runtime::threads::{self, Instant};

/// How long a start is tried whose answer was lost, and the pause in between. It is repeated under the same token, so
/// that it counts once.
const START_TRIES_TIME: Duration = Duration::from_secs(10);
const START_PAUSE: Duration = Duration::from_millis(500);

/// A job that has begun, and what keeps it ours.
pub(super) struct Run<'a> {
    pub(super) shared: &'a Shared,
    pub(super) start: StartedJob,
    pub(super) message: JobMessage,
    pub(super) job: Job,
    pub(super) lease: Arc<RunLease>,
    pub(super) watch: Watch,
    pub(super) began: Instant,
}

/// The threads beside a run. They would be waited for for ever if the bell were not rung first, by a panic too.
struct Beside<'a, 'scope> {
    _ring: Ring<'a>,
    threads: Vec<threads::ScopedThread<'scope>>,
}

/// Handles an entry. Where the key-value store fails, the entry stays claimed, and is taken over once it has shown no
/// life for long enough.
pub(super) fn execute(shared: &Shared, entry: Entry) {
    let fields = entry.fields.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let (message, refused) = match JobMessage::parse(fields, entry.received_at) {
        Arrival::Job(message) => (message, None),
        Arrival::Refused(message, error) => (message, Some(error)),
        Arrival::Dead(why) => return bury(shared, &entry, &why),
    };
    let Some(run) = start(shared, &entry, message) else { return };
    failpoint::reach("worker::started");
    // Whatever this thread logs of the job tells its ids.
    let (job_id, pipeline) = (run.message.job_id.as_str(), run.message.pipeline.as_str());
    let job = tracing::info_span!("job", job_id, pipeline, fence = run.start.lease.fence, attempt = run.start.attempt);
    let _job = job.enter();
    let _in_flight = shared.state.enter();
    let bell = Bell::default();
    std::thread::scope(|scope| {
        let mut beside = Beside { _ring: bell.ring_at_end(), threads: Vec::new() };
        let mut started = Ok(());
        for (name, body) in [("keeper", keeper::keep as fn(&Run<'_>, &Bell)), ("teller", keeper::tell)] {
            let (run, bell, job) = (&run, &bell, &job);
            match threads::spawn_scoped(scope, name, move || job.in_scope(|| body(run, bell))) {
                Ok(thread) => beside.threads.push(thread),
                Err(error) => started = Err(error),
            }
        }
        let outcome = match started {
            Ok(()) => outcome(&run, refused),
            Err(error) => Outcome::HostExhausted(error),
        };
        Finish { run: &run }.finish(outcome);
    });
}

fn bury(shared: &Shared, entry: &Entry, why: &str) {
    tracing::warn!(entry = entry.id.0, why, "no pipeline can own the entry; it is kept among the dead ones");
    match shared.kv.dead_letter(entry, why) {
        Ok(()) => shared.state.count(Happened::Dead),
        Err(error) => tracing::warn!(entry = entry.id.0, %error, "moving it there failed; it will be tried again"),
    }
}

/// Takes the lock. `None`: there is nothing to run here.
fn start<'a>(shared: &'a Shared, entry: &Entry, message: JobMessage) -> Option<Run<'a>> {
    let (job_id, pipeline) = (message.job_id.as_str(), message.pipeline.as_str());
    let lock_ttl = shared.options.lease.lock_ttl;
    let fence_floor = shared.store.highest_fence(&message.pipeline).unwrap_or_else(|error| {
        tracing::warn!(job_id, pipeline, %error, "the store's own fence is not known");
        0
    });
    let since = Moment::now(&*shared.clock);
    let request = StartRequest {
        entry: &entry.id,
        consumer: &shared.options.name,
        message: &message,
        token: &uuid::Uuid::new_v4().to_string(),
        lock_ttl,
        fence_floor,
        attempts_max: shared.options.attempts_max,
    };
    let tried = || shared.kv.start(&request);
    let pause = || {
        shared.stopping.wait_for(Phase::Abandon, START_PAUSE);
    };
    let give_up = || shared.stopping.phase() == Phase::Abandon;
    let start = match persist("starting a job", START_TRIES_TIME, tried, pause, give_up) {
        Ok(StartOutcome::Running(start)) => start,
        Ok(StartOutcome::Deferred { until }) => {
            shared.state.count(Happened::Deferred);
            tracing::info!(job_id, pipeline, %until, "another run of the pipeline is on; the job waits");
            return None;
        }
        Ok(StartOutcome::RunningElsewhere) => {
            tracing::info!(job_id, pipeline, "the job runs elsewhere; its entry is left alone");
            return None;
        }
        Ok(StartOutcome::NotMine) => {
            tracing::info!(job_id, pipeline, "another worker has taken the entry over");
            return None;
        }
        Ok(StartOutcome::Dropped) => {
            tracing::info!(job_id, pipeline, "the pipeline was deleted after the job was enqueued; the job is gone");
            return None;
        }
        Ok(StartOutcome::IdTaken) => {
            bury(shared, entry, "its job_id is that of a job of another pipeline");
            return None;
        }
        Err(error) => {
            tracing::warn!(job_id, pipeline, %error, "starting a job failed; it will be tried again");
            // A store that lets entries be claimed and not started would have all of them claimed in vain.
            shared.state.breakers.suspect(Dependency::Kv);
            return None;
        }
    };
    let lease = Arc::new(RunLease::new(
        message.pipeline.clone(),
        start.lease.fence,
        lock_ttl,
        Arc::clone(&shared.clock),
        since,
    ));
    let queued = Job::queued(&message, shared.options.attempts_max);
    // A start beyond the last only records that the job's workers were lost.
    let attempt = start.attempt.min(shared.options.attempts_max);
    let job = queued.started(&shared.options.name, start.lease.fence, attempt, shared.clock.now());
    let watch = Watch::new(shared, start.lease.clone(), Arc::clone(&lease), start.cancelled);
    Some(Run { shared, start, message, job, lease, watch, began: Instant::now() })
}

fn outcome(run: &Run<'_>, refused: Option<RunError>) -> Outcome {
    let shared = run.shared;
    if shared.stopping.phase() != Phase::Working {
        return Outcome::Abandoned;
    }
    let (job_id, pipeline) = (run.message.job_id.as_str(), run.message.pipeline.as_str());
    tracing::info!(job_id, pipeline, fence = run.start.lease.fence, attempt = run.start.attempt, "the job has started");
    match (Finish { run }).found_record() {
        Ok(Some(job)) => return Outcome::Recorded(job),
        Ok(None) => {}
        Err(error) => return Outcome::Failed(error),
    }
    if let Some(error) = refused {
        return Outcome::Failed(error);
    }
    if run.start.cancelled {
        return Outcome::Failed(RunError::new(RunErrorCode::Cancelled, "the job was cancelled before it ran"));
    }
    let (attempt, attempts_max) = (run.start.attempt, shared.options.attempts_max);
    if attempt > attempts_max {
        return Outcome::Failed(worker_lost(run, attempts_max));
    }
    let lonely = attempt == attempts_max && run.start.lost_starts > 0;
    let give_up = || run.watch.must_stop().is_err();
    let Some(_running) = shared.alone.enter(lonely, give_up) else {
        return Outcome::stopped(&run.watch);
    };
    match attempt::run(run) {
        Ok(result) => Outcome::Completed(result),
        Err(error) => Outcome::Failed(error),
    }
}

fn worker_lost(run: &Run<'_>, attempts_max: u32) -> RunError {
    let lost = run.start.lost_starts;
    let message = format!("the job was started {attempts_max} times, and its worker died or was killed {lost} times");
    RunError::new(RunErrorCode::WorkerLost, message)
        .detail("see the logs of the workers and of the system (out of memory?); give it less data at a time, or more memory, and run it again")
}
