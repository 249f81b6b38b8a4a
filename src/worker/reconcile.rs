//! Compares the lake with the tables where these may be stale: after the key-value store lost its data, after a job
//! failed because of the object store or a full disk, and periodically if configured.

use std::collections::BTreeMap;
use std::time::Duration;

use super::breaker::Dependency;
use super::config;
use super::lifetime::{Lifetime, WorkSource};
use super::retry::OutageLog;
use super::shared::WorkerShared;
use super::stopping::Phase;
use crate::domain::job::{RunError, RunErrorCode};
use crate::domain::name::Slug;
use crate::engine::run::{Difference, difference};
use crate::pipelines;
use crate::ports::kv::KvError;
use crate::ports::rechecks::Recheck;
use crate::ports::store::Bucket;
use crate::runtime::WatchedThread;
use crate::runtime::threads::Instant;

/// How often the key-value store is checked for lost data.
const CHECK_EVERY: Duration = Duration::from_secs(5);
/// The lock of the worker that makes the periodic comparison, for the interval.
const PERIODIC: &str = "periodic comparison";
/// Longest time of a comparison of all pipelines; a longer one is repeated.
pub(super) const COMPARING_TIME_MAX: Duration = Duration::from_secs(6 * 3_600);

/// Failed pipelines that are compared per round, and for how long each is held from other workers.
const RECHECKS_PER_ROUND: usize = 100;
const RECHECK_HOLD: Duration = Duration::from_secs(120);

/// The differences for which a run was last requested: a run that keeps failing is not requested again until something
/// changes.
pub(super) type Requested = BTreeMap<Slug, Reason>;

/// Why a run is requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reason {
    Differs(Difference),
    /// The config is invalid: the run reports why.
    InvalidConfig(RunError),
}

/// Why a comparison failed.
enum ReconcileError {
    /// A store failed; retry soon.
    Transient(String),
    /// One pipeline can't be compared; a retry would fail again.
    Pipeline(String),
}

impl From<RunError> for ReconcileError {
    fn from(error: RunError) -> Self {
        let text = error.to_string();
        // An internal error means an unusable manifest, which must not hold up other pipelines.
        let is_of_store = error.code.is_transient() && error.code != RunErrorCode::Internal;
        if is_of_store { Self::Transient(text) } else { Self::Pipeline(text) }
    }
}

impl From<KvError> for ReconcileError {
    fn from(error: KvError) -> Self {
        match error {
            KvError::Unavailable { .. } | KvError::Refused { .. } => Self::Transient(error.to_string()),
            KvError::Malformed { .. } => Self::Pipeline(error.to_string()),
        }
    }
}

/// The pipelines to compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PipelineSelection {
    /// Pipelines without an active job. The others are compared once they have none.
    Idle,
    /// All of them: there may be no next time.
    All,
}

/// Compares until the worker stops.
pub(super) fn run(shared: &WorkerShared, watched: &WatchedThread) {
    let mut outage = OutageLog::new("comparing the lake with the tables");
    let mut requested = Requested::new();
    let mut compared: Option<Instant> = None;
    let mut initialized = true;
    loop {
        let checked = watched.waiting(|| {
            let done = check(shared, &mut requested, &mut compared, &mut initialized)?;
            recheck(shared).map(|()| done)
        });
        match checked {
            Ok(done) => {
                outage.recovered();
                if done {
                    shared.sources.set_empty(WorkSource::Comparison);
                }
            }
            Err(error) => outage.failed(&error),
        }
        if shared.stopping.wait_for(Phase::Drain, CHECK_EVERY) {
            return;
        }
    }
}

/// Whether all that was to be compared is.
fn check(
    shared: &WorkerShared,
    requested: &mut Requested,
    compared: &mut Option<Instant>,
    initialized: &mut bool,
) -> Result<bool, String> {
    let is_initialized = shared.kv.is_initialized().map_err(|e| e.to_string())?;
    if *initialized && !is_initialized {
        log_lost_data(shared)?;
        requested.clear();
    }
    *initialized = is_initialized;
    let (every, which) = match shared.options.lifetime {
        Lifetime::UntilStopped => (shared.options.reconcile, PipelineSelection::Idle),
        // There is no next time here.
        Lifetime::UntilDrained { compare } => (compare.then_some(Duration::MAX), PipelineSelection::All),
    };
    let due = every.filter(|every| compared.is_none_or(|at| at.elapsed() >= *every));
    match due {
        None if is_initialized => return Ok(true),
        Some(every) if is_initialized && !claims_periodic_comparison(shared, every, compared.is_none())? => {
            *compared = Some(Instant::now());
            return Ok(true);
        }
        Some(_) | None => {}
    }
    let done = if is_initialized { all(shared, requested, which)? } else { after_lost_data(shared, requested)? };
    // Distinguishes the next loss of data from this one.
    *initialized |= done;
    if done {
        *compared = Some(Instant::now());
    }
    Ok(done)
}

/// Whether this worker makes the periodic comparison: one of all workers does. Each compares when it starts, since there may
/// have been no worker before.
fn claims_periodic_comparison(shared: &WorkerShared, every: Duration, starts: bool) -> Result<bool, String> {
    if shared.options.lifetime.ends() {
        return Ok(starts);
    }
    let got = shared.kv.try_lock(PERIODIC, &shared.options.name, every).map_err(|error| error.to_string())?;
    Ok(got || starts)
}

/// Without pipelines no data can have been lost.
fn log_lost_data(shared: &WorkerShared) -> Result<(), String> {
    match pipelines::any(&*shared.store).map_err(|e| e.to_string())? {
        false => tracing::info!("key-value store is empty; no pipelines yet"),
        true => tracing::info!("key-value store is new or lost its data; comparing all pipelines"),
    }
    Ok(())
}

/// Compares every pipeline, then marks the key-value store as initialized; false if that has to be repeated. A lock
/// that no other worker uses detects whether the store lost its data again meanwhile, and with it the requested runs:
/// then the lock is gone as well.
fn after_lost_data(shared: &WorkerShared, requested: &mut Requested) -> Result<bool, String> {
    let name = format!("comparing by {}", shared.options.name);
    let token = uuid::Uuid::new_v4().to_string();
    let failed = |error: KvError| error.to_string();
    if shared.kv.try_lock(&name, &token, COMPARING_TIME_MAX).map_err(failed)? {
        requested.clear();
    }
    let done = all(shared, requested, PipelineSelection::All)?;
    let is_lost_again = shared.kv.try_lock(&name, "nobody", CHECK_EVERY).map_err(failed)?;
    if is_lost_again {
        requested.clear();
    } else if done {
        shared.kv.mark_initialized().map_err(failed)?;
    }
    shared.kv.unlock(&name, &token).map_err(failed)?;
    Ok(done && !is_lost_again)
}

/// Requests a run of every idle pipeline whose tables don't match its lake, after notifications were lost.
///
/// # Errors
/// A store failed; retry.
pub(super) fn after_lost_notifications(shared: &WorkerShared, requested: &mut Requested) -> Result<(), String> {
    all(shared, requested, PipelineSelection::Idle).map(drop)
}

/// Compares pipelines with a job that failed, on any worker, because of the store or a full disk, once no circuit breaker
/// is open here.
fn recheck(shared: &WorkerShared) -> Result<(), String> {
    for _ in 0..RECHECKS_PER_ROUND {
        if shared.stopping.phase() != Phase::Working || !shared.state.breakers.open().is_empty() {
            break;
        }
        // One at a time, so that a hanging store doesn't keep others from other workers.
        let taken = shared.kv.take_rechecks(1, RECHECK_HOLD).map_err(|error| error.to_string())?;
        let Some(slug) = taken.first() else { break };
        let (outcome, failed) = match one(shared, slug, &mut Requested::new(), PipelineSelection::Idle) {
            Ok(Compared::Busy) => (Recheck::Retry, None),
            Ok(Compared::Same) => (Recheck::Done, None),
            Ok(Compared::Requested) => (Recheck::RunRequested, None),
            Err(ReconcileError::Transient(error)) => {
                shared.state.breakers.suspect(Dependency::Store);
                (Recheck::Retry, Some(error))
            }
            Err(ReconcileError::Pipeline(error)) => {
                tracing::warn!(pipeline = %slug, error, "comparing the lake failed; pipeline skipped");
                (Recheck::Done, None)
            }
        };
        shared.kv.complete_recheck(slug, outcome).map_err(|error| error.to_string())?;
        if let Some(error) = failed {
            return Err(error);
        }
    }
    Ok(())
}

/// Requests runs of `auto_run` pipelines whose tables don't match their lake; false if the worker stopped before all
/// were compared. Skips pipelines that can't be compared.
fn all(shared: &WorkerShared, requested: &mut Requested, which: PipelineSelection) -> Result<bool, String> {
    for slug in pipelines::slugs(&*shared.store, Bucket::Pipelines) {
        if shared.stopping.phase() != Phase::Working {
            return Ok(false);
        }
        let slug = slug.map_err(|error| error.to_string())?;
        match one(shared, &slug, requested, which) {
            // The active job may check some keys only.
            Ok(Compared::Busy) => shared.kv.add_recheck(&slug).map_err(|error| error.to_string())?,
            Ok(Compared::Same | Compared::Requested) => {}
            Err(ReconcileError::Transient(error)) => return Err(error),
            Err(ReconcileError::Pipeline(error)) => {
                shared.state.count_uncompared();
                tracing::warn!(pipeline = %slug, error, "comparing the lake failed; pipeline skipped");
            }
        }
    }
    Ok(true)
}

/// The outcome of comparing one pipeline.
enum Compared {
    /// Not compared: a job is active.
    Busy,
    /// Nothing to do, or a run was requested before.
    Same,
    /// A run is requested.
    Requested,
}

fn one(
    shared: &WorkerShared,
    slug: &Slug,
    requested: &mut Requested,
    which: PipelineSelection,
) -> Result<Compared, ReconcileError> {
    let text = config::read_text(shared, slug);
    if !config::auto_run(&text) {
        return Ok(Compared::Same);
    }
    if which == PipelineSelection::Idle && !shared.kv.active(slug, 1)?.is_empty() {
        return Ok(Compared::Busy);
    }
    let found = match text.and_then(|text| config::check(&*shared.expressions, slug, &text)) {
        Ok(pipeline) => difference(&*shared.store, slug, &pipeline, &shared.options.scratch_dir)?.map(Reason::Differs),
        Err(error) if error.code == RunErrorCode::InvalidConfig => Some(Reason::InvalidConfig(error)),
        // Without a config there is nothing to run.
        Err(error) if error.code == RunErrorCode::PipelineConfigNotFound => None,
        Err(error) => return Err(error.into()),
    };
    let Some(found) = found else {
        requested.remove(slug);
        return Ok(Compared::Same);
    };
    if requested.get(slug) == Some(&found) {
        return Ok(Compared::Same);
    }
    match &found {
        Reason::Differs(_) => {
            tracing::info!(pipeline = %slug, "tables don't match the lake; run requested");
        }
        Reason::InvalidConfig(error) => {
            tracing::warn!(pipeline = %slug, %error, "config invalid; run requested to report it")
        }
    }
    shared.kv.request_runs(std::slice::from_ref(slug))?;
    requested.insert(slug.clone(), found);
    Ok(Compared::Requested)
}
