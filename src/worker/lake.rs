//! Turns change notifications of the lake into debounce windows.

use std::collections::BTreeMap;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError};

use super::reconcile::{self, Requested};
use super::record::record_changes;
use super::retry::OutageLog;
use super::shared::WorkerShared;
use super::stopping::Phase;
use crate::domain::job::ChangedKeys;
use crate::domain::layout::split_key;
use crate::domain::name::Slug;
use crate::ports::store::LakeChange;
use crate::runtime::WatchedThread;

/// How long it takes to notice a stop.
const CHECK_EVERY: Duration = Duration::from_millis(500);
/// Pause after a failure.
const PAUSE: Duration = Duration::from_secs(5);

/// The changes that are not recorded yet.
type Changes = BTreeMap<Slug, ChangedKeys>;

/// Receives notifications until the worker stops or the sender is gone. Keeps those that can't be recorded yet.
pub(super) fn run(shared: &WorkerShared, changes: &Receiver<LakeChange>, watched: &WatchedThread) {
    let mut outage = OutageLog::new("recording changes of the lake");
    let mut changed = Changes::new();
    let mut rescan = false;
    let mut requested = Requested::new();
    let mut wait = CHECK_EVERY;
    while shared.stopping.phase() == Phase::Working {
        watched.ping();
        match changes.recv_timeout(wait) {
            Ok(LakeChange::Keys(keys)) => add(&mut changed, &keys),
            Ok(LakeChange::Rescan) => rescan = true,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        wait = match watched.waiting(|| record(shared, &mut changed, &mut rescan, &mut requested)) {
            Ok(()) => {
                outage.recovered();
                CHECK_EVERY
            }
            Err(error) => {
                outage.failed(&error);
                // Notifications queue up meanwhile.
                shared.stopping.wait_for(Phase::Drain, PAUSE);
                Duration::ZERO
            }
        };
    }
}

fn add(changed: &mut Changes, keys: &[String]) {
    for (pipeline, key) in keys.iter().filter_map(|key| split_key(key)) {
        changed.entry(pipeline).or_insert_with(ChangedKeys::none).insert(key);
    }
    *changed = std::mem::take(changed).into_iter().map(|(pipeline, keys)| (pipeline, keys.bounded())).collect();
}

fn record(
    shared: &WorkerShared,
    changed: &mut Changes,
    rescan: &mut bool,
    requested: &mut Requested,
) -> Result<(), String> {
    let changes: Vec<_> = std::mem::take(changed).into_iter().collect();
    if let Err(error) = record_changes(&*shared.kv, &shared.state, &changes) {
        changed.extend(changes);
        return Err(error.to_string());
    }
    if *rescan {
        reconcile::after_lost_notifications(shared, requested)?;
        *rescan = false;
    }
    Ok(())
}
