//! Executes one entry of the stream, from its claim to its acknowledgement.

use std::sync::Arc;
use std::time::Duration;

use super::breaker::Dependency;
use super::finish::{Finish, Outcome};
use super::heartbeat::{ShutdownGuard, ShutdownSignal, heartbeat, report_progress};
use super::observe::Watch;
use super::retry::retry_until;
use super::run::{self, Run};
use super::shared::WorkerShared;
use super::state::JobEvent;
use super::stopping::Phase;
use crate::domain::job::{Job, JobMessage, ParsedEntry, RunError, RunErrorCode, WaitReason, retry};
use crate::domain::limits::PAUSED_WAIT_MS;
use crate::pipelines::lease::{Moment, RunLease};
use crate::ports::jobs::{Entry, StartOutcome, StartRequest};
use crate::runtime::failpoint;
use crate::runtime::threads::{self, Instant};
use crate::system;

/// How long a start is retried whose response was lost, and the pause before each retry. Retries use the same token, so
/// that they count once.
const START_RETRY_TIME_MAX: Duration = Duration::from_secs(10);
const START_PAUSE: Duration = Duration::from_millis(500);

/// The threads of a run. The guard is dropped first, also by a panic: joining them would otherwise never end.
struct RunThreads<'a, 'scope> {
    _shutdown: ShutdownGuard<'a>,
    threads: Vec<threads::ScopedThread<'scope>>,
}

/// Executes an entry. If the key-value store fails, the entry stays claimed, and another worker reclaims it after a time
/// without heartbeats.
pub(super) fn execute(shared: &WorkerShared, entry: Entry) {
    let fields = entry.fields.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let (message, refused) = match JobMessage::parse(fields, entry.received_at) {
        ParsedEntry::Job(message) => (message, None),
        ParsedEntry::Refused(message, error) => (message, Some(error)),
        ParsedEntry::Invalid(why) => return dead_letter(shared, &entry, &why),
    };
    let Some(run) = start(shared, &entry, message) else { return };
    failpoint::reach("worker::started");
    // All log lines of the job carry its ids.
    let (job_id, pipeline) = (run.message.job_id.as_str(), run.message.pipeline.as_str());
    let job = tracing::info_span!("job", job_id, pipeline, fence = run.start.lease.fence, attempt = run.start.attempt);
    let _job = job.enter();
    let _in_flight = shared.state.enter();
    let shutdown = ShutdownSignal::default();
    std::thread::scope(|scope| {
        let mut running = RunThreads { _shutdown: shutdown.guard(), threads: Vec::new() };
        let mut started = Ok(());
        let bodies = [("heartbeat", heartbeat as fn(&Run<'_>, &ShutdownSignal)), ("progress", report_progress)];
        for (name, body) in bodies {
            let (run, shutdown, job) = (&run, &shutdown, &job);
            match threads::spawn_scoped(scope, name, move || job.in_scope(|| body(run, shutdown))) {
                Ok(thread) => running.threads.push(thread),
                Err(error) => started = Err(error),
            }
        }
        let outcome = match started {
            Ok(()) => outcome(&run, refused),
            Err(error) => Outcome::HostExhausted(error),
        };
        Finish { run: &run }.finish(outcome);
    });
    // The next job may be small, and a worker waits for most of its life.
    system::release_memory();
}

fn dead_letter(shared: &WorkerShared, entry: &Entry, why: &str) {
    tracing::warn!(entry = entry.id.0, why, "entry has no valid pipeline; moved to the dead letters");
    match shared.kv.dead_letter(entry, why) {
        Ok(()) => shared.state.count(JobEvent::DeadLettered),
        Err(error) => tracing::warn!(entry = entry.id.0, %error, "dead-letter move failed; will retry"),
    }
}

/// Takes the lock and starts the job. `None`: there is nothing to run here.
fn start<'a>(shared: &'a WorkerShared, entry: &Entry, message: JobMessage) -> Option<Run<'a>> {
    let (job_id, pipeline) = (message.job_id.as_str(), message.pipeline.as_str());
    let lock_ttl = shared.options.lease.lock_ttl;
    let fence_floor = shared.store.highest_fence(&message.pipeline).unwrap_or_else(|error| {
        tracing::warn!(job_id, pipeline, %error, "reading the highest fence of the store failed");
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
    let call = || shared.kv.start(&request);
    let pause = || {
        shared.stopping.wait_for(Phase::ForceStop, START_PAUSE);
    };
    let give_up = || shared.stopping.phase() == Phase::ForceStop;
    let start = match retry_until("starting a job", START_RETRY_TIME_MAX, call, pause, give_up) {
        Ok(StartOutcome::Running(start)) => start,
        Ok(StartOutcome::Deferred { until }) => {
            shared.state.count(JobEvent::Deferred);
            tracing::info!(job_id, pipeline, %until, "another run of the pipeline is in progress; job waits");
            return None;
        }
        Ok(StartOutcome::RunningElsewhere) => {
            tracing::info!(job_id, pipeline, "job runs on another worker; entry skipped");
            return None;
        }
        Ok(StartOutcome::NotClaimed) => {
            tracing::info!(job_id, pipeline, "entry reclaimed by another worker");
            return None;
        }
        Ok(StartOutcome::Dropped) => {
            tracing::info!(job_id, pipeline, "pipeline deleted after the job was enqueued; job dropped");
            return None;
        }
        Ok(StartOutcome::IdTaken) => {
            dead_letter(shared, entry, "its job_id is used by a job of another pipeline");
            return None;
        }
        Err(error) => {
            tracing::warn!(job_id, pipeline, %error, "starting a job failed; will retry");
            // Otherwise this worker would claim all entries and start none.
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
    // A start after the last attempt only records that workers were lost.
    let attempt = start.attempt.min(shared.options.attempts_max);
    let job = queued.started(&shared.options.name, start.lease.fence, attempt, shared.clock.now());
    let watch = Watch::new(shared, start.lease.clone(), Arc::clone(&lease), start.cancelled);
    let expressions = shared.expressions.for_run();
    Some(Run { shared, start, message, job, lease, watch, expressions, began: Instant::now() })
}

fn outcome(run: &Run<'_>, refused: Option<RunError>) -> Outcome {
    let shared = run.shared;
    if shared.stopping.phase() != Phase::Working {
        return Outcome::Requeued;
    }
    let (job_id, pipeline) = (run.message.job_id.as_str(), run.message.pipeline.as_str());
    tracing::info!(job_id, pipeline, fence = run.start.lease.fence, attempt = run.start.attempt, "job started");
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
    // A dry run writes no table.
    if !run.job.is_dry_run()
        && let Some(waits) = paused(run)
    {
        return waits;
    }
    let (attempt, attempts_max) = (run.start.attempt, shared.options.attempts_max);
    if attempt > attempts_max {
        return Outcome::Failed(worker_lost(run, attempts_max));
    }
    if let Some(times) = shared.left_to_others.give_back(&run.message.job_id) {
        tracing::info!(times, "job filled this worker's scratch folder before; left to other workers");
        let message = "the scratch folder of a worker is too small for the run; other workers are tried first";
        let error = Some(RunError::new(RunErrorCode::DiskFull, message));
        let delay = retry::backoff(times, threads::random_unit());
        return Outcome::Waits { reason: WaitReason::Retry, delay, error };
    }
    let exclusive = attempt == attempts_max && run.start.lost_starts > 0;
    let give_up = || run.watch.must_stop().is_err();
    let Some(_running) = shared.gate.enter(exclusive, give_up) else {
        return Outcome::stopped(&run.watch);
    };
    match run::attempt(run) {
        Ok(result) => Outcome::Completed(result),
        Err(error) => Outcome::Failed(error),
    }
}

/// The wait of a job whose pipeline, or all, are paused.
fn paused(run: &Run<'_>) -> Option<Outcome> {
    let shared = run.shared;
    match shared.kv.paused(Some(&run.message.pipeline)) {
        Ok(None) => None,
        Ok(Some(_)) => {
            tracing::info!("runs of the pipeline are paused; job waits");
            let delay = Duration::from_millis(PAUSED_WAIT_MS);
            Some(Outcome::Waits { reason: WaitReason::Paused, delay, error: None })
        }
        Err(error) => {
            tracing::warn!(%error, "reading the pauses failed; will retry");
            shared.state.breakers.suspect(Dependency::Kv);
            let delay = retry::backoff(1, threads::random_unit());
            Some(Outcome::Waits { reason: WaitReason::Retry, delay, error: None })
        }
    }
}

fn worker_lost(run: &Run<'_>, attempts_max: u32) -> RunError {
    let lost = run.start.lost_starts;
    let message = format!("the job was started {attempts_max} times; its worker died or was killed {lost} times");
    RunError::new(RunErrorCode::WorkerLost, message)
        .detail("check the logs of the workers and of the system (out of memory?), then run it again with less data or more memory")
}
