//! Compares the lake with what was made of it, where a table may be stale: after the key-value store lost its data,
//! after a job failed because of the object store or a full disk, and periodically where that is configured.

use std::collections::BTreeMap;
use std::time::Duration;

use super::retrying::Outage;
use super::stopping::Phase;
use super::{Dependency, Shared, config};
use crate::domain::job::{RunError, RunErrorCode};
use crate::domain::name::Slug;
use crate::engine::run::{Difference, difference};
use crate::pipelines;
use crate::ports::kv::KvError;
use crate::ports::rechecks::Recheck;
use crate::ports::store::Bucket;
use crate::runtime::WatchedThread;
use crate::runtime::threads::Instant;

/// How often the key-value store is asked whether it remembers.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Longest time of a comparison of all pipelines; one that takes longer is done again.
pub(super) const COMPARING_TIME_MAX: Duration = Duration::from_secs(6 * 3_600);

/// Failed pipelines that are compared between two looks, and for how long no other worker takes one.
const RECHECKS_AT_ONCE: usize = 100;
const RECHECK_HOLD: Duration = Duration::from_secs(120);

/// The differences for which a run was asked for last: one that fails again and again is not asked for again until
/// something changes.
pub(super) type Seen = BTreeMap<Slug, Reason>;

/// Why a run is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reason {
    Differs(Difference),
    /// The config can't be used: the run tells what is wrong with it.
    Refused(RunError),
}

/// What could not be compared.
enum Trouble {
    /// Worth another look soon: a store is away.
    Passing(String),
    /// It lies in one pipeline, and would lie there again.
    OfOne(String),
}

impl From<RunError> for Trouble {
    fn from(error: RunError) -> Self {
        let told = error.to_string();
        if error.code.is_transient() { Self::Passing(told) } else { Self::OfOne(told) }
    }
}

impl From<KvError> for Trouble {
    fn from(error: KvError) -> Self {
        match error {
            KvError::Unavailable { .. } | KvError::Refused { .. } => Self::Passing(error.to_string()),
            KvError::Malformed { .. } => Self::OfOne(error.to_string()),
        }
    }
}

/// Which pipelines are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    /// Those without an active job. One that has a job is looked at the next time.
    Idle,
    /// All of them: there may be no next time.
    All,
}

/// Looks until the worker is told to end.
pub(super) fn run(shared: &Shared, watched: &WatchedThread) {
    let mut outage = Outage::new("comparing the lake with the tables");
    let mut seen = Seen::new();
    let mut compared: Option<Instant> = None;
    let mut remembered = true;
    loop {
        let looked = watched.waiting(|| {
            look(shared, &mut seen, &mut compared, &mut remembered)?;
            recheck(shared)
        });
        match looked {
            Ok(()) => outage.over(),
            Err(error) => outage.tell(&error),
        }
        if shared.stopping.wait_for(Phase::Drain, LOOK_EVERY) {
            return;
        }
    }
}

fn look(shared: &Shared, seen: &mut Seen, compared: &mut Option<Instant>, remembered: &mut bool) -> Result<(), String> {
    let remembers = shared.kv.is_initialized().map_err(|e| e.to_string())?;
    if *remembered && !remembers {
        tell_forgotten(shared)?;
        seen.clear();
    }
    *remembered = remembers;
    let due = shared.options.reconcile.is_some_and(|every| compared.is_none_or(|at| at.elapsed() >= every));
    if remembers && !due {
        return Ok(());
    }
    let done = if remembers { all(shared, seen, Which::Idle)? } else { after_lost_data(shared, seen)? };
    // A loss that comes before the next look is told from this one.
    *remembered |= done;
    if done {
        *compared = Some(Instant::now());
    }
    Ok(())
}

/// Where nothing was ever made nothing can have been lost.
fn tell_forgotten(shared: &Shared) -> Result<(), String> {
    match pipelines::any(&*shared.store).map_err(|e| e.to_string())? {
        false => tracing::info!("the key-value store is new, and there is no pipeline yet"),
        true => tracing::info!("the key-value store is new or has lost its data; every pipeline's lake is compared"),
    }
    Ok(())
}

/// Compares every pipeline, then has the key-value store remember that it was done; false if that has to be done again. A
/// lock that nobody else wants tells whether the store has lost its data once more, and with them the windows that were
/// extended: then it would have gone, too.
fn after_lost_data(shared: &Shared, seen: &mut Seen) -> Result<bool, String> {
    let name = format!("comparing by {}", shared.options.name);
    let token = uuid::Uuid::new_v4().to_string();
    let failed = |error: KvError| error.to_string();
    if shared.kv.try_lock(&name, &token, COMPARING_TIME_MAX).map_err(failed)? {
        seen.clear();
    }
    let done = all(shared, seen, Which::All)?;
    let is_lost_again = shared.kv.try_lock(&name, "nobody", LOOK_EVERY).map_err(failed)?;
    if is_lost_again {
        seen.clear();
    } else if done {
        shared.kv.mark_initialized().map_err(failed)?;
    }
    shared.kv.unlock(&name, &token).map_err(failed)?;
    Ok(done && !is_lost_again)
}

/// After news were lost: the window of every idle pipeline whose lake isn't what its tables are made of is extended.
///
/// # Errors
/// A store is away; to be tried again.
pub(super) fn after_lost_news(shared: &Shared, seen: &mut Seen) -> Result<(), String> {
    all(shared, seen, Which::Idle).map(drop)
}

/// Compares the pipelines of which a job failed on any worker because of the store or a full disk, once no circuit breaker
/// is open here.
fn recheck(shared: &Shared) -> Result<(), String> {
    for _ in 0..RECHECKS_AT_ONCE {
        if shared.stopping.phase() != Phase::Working || !shared.state.breakers.open().is_empty() {
            break;
        }
        // One at a time: a store that hangs keeps no other from other workers.
        let taken = shared.kv.take_rechecks(1, RECHECK_HOLD).map_err(|error| error.to_string())?;
        let Some(slug) = taken.first() else { break };
        let (outcome, failed) = match one(shared, slug, &mut Seen::new(), Which::Idle) {
            Ok(Compared::Busy) => (Recheck::Retry, None),
            Ok(Compared::Same) => (Recheck::Done, None),
            Ok(Compared::Asked) => (Recheck::RunRequested, None),
            Err(Trouble::Passing(error)) => {
                shared.state.breakers.suspect(Dependency::Store);
                (Recheck::Retry, Some(error))
            }
            Err(Trouble::OfOne(error)) => {
                tracing::warn!(pipeline = %slug, error, "its lake can't be compared");
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

/// Extends the windows of `auto_run` pipelines whose lake isn't what their tables are made of; false if the worker was
/// told to end before all were looked at. A pipeline that can't be compared for its own sake is passed over.
fn all(shared: &Shared, seen: &mut Seen, which: Which) -> Result<bool, String> {
    for slug in pipelines::slugs(&*shared.store, Bucket::Pipelines) {
        if shared.stopping.phase() != Phase::Working {
            return Ok(false);
        }
        let slug = slug.map_err(|error| error.to_string())?;
        match one(shared, &slug, seen, which) {
            Ok(Compared::Busy | Compared::Same | Compared::Asked) => {}
            Err(Trouble::Passing(error)) => return Err(error),
            Err(Trouble::OfOne(error)) => tracing::warn!(pipeline = %slug, error, "its lake can't be compared"),
        }
    }
    Ok(true)
}

/// What a comparison of one pipeline led to.
enum Compared {
    /// Not compared: a job of it is active.
    Busy,
    /// Nothing is to be done, or a run was asked for before.
    Same,
    /// A run is asked for.
    Asked,
}

fn one(shared: &Shared, slug: &Slug, seen: &mut Seen, which: Which) -> Result<Compared, Trouble> {
    let text = config::read_text(shared, slug);
    if !config::auto_run(&text) {
        return Ok(Compared::Same);
    }
    if which == Which::Idle && !shared.kv.active(slug, 1)?.is_empty() {
        return Ok(Compared::Busy);
    }
    let found = match text.and_then(|text| config::check(&*shared.expressions, slug, &text)) {
        Ok(pipeline) => difference(&*shared.store, slug, &pipeline)?.map(Reason::Differs),
        Err(error) if error.code == RunErrorCode::InvalidConfig => Some(Reason::Refused(error)),
        // Without a config there is no pipeline to run.
        Err(error) if error.code == RunErrorCode::PipelineConfigNotFound => None,
        Err(error) => return Err(error.into()),
    };
    let Some(found) = found else {
        seen.remove(slug);
        return Ok(Compared::Same);
    };
    if seen.get(slug) == Some(&found) {
        return Ok(Compared::Same);
    }
    match &found {
        Reason::Differs(_) => {
            tracing::info!(pipeline = %slug, "the lake is not what the tables are made of: a run is asked for");
        }
        Reason::Refused(error) => {
            tracing::warn!(pipeline = %slug, %error, "a run is asked for, which will tell the same")
        }
    }
    shared.kv.extend_windows(std::slice::from_ref(slug))?;
    seen.insert(slug.clone(), found);
    Ok(Compared::Asked)
}
