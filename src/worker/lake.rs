//! Turns change notifications of the lake into debounce windows.

use std::collections::BTreeSet;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError};

use super::reconcile::{self, Requested};
use super::retry::OutageLog;
use super::shared::Shared;
use super::stopping::Phase;
use crate::domain::layout::pipeline_of;
use crate::domain::name::Slug;
use crate::ports::store::LakeChange;
use crate::runtime::WatchedThread;

/// How long it takes to notice a stop.
const CHECK_EVERY: Duration = Duration::from_millis(500);
/// Pause after a failure.
const PAUSE: Duration = Duration::from_secs(5);

/// Receives notifications until the worker stops or the sender is gone. Keeps those that can't be recorded yet.
pub(super) fn run(shared: &Shared, changes: &Receiver<LakeChange>, watched: &WatchedThread) {
    let mut outage = OutageLog::new("recording changes of the lake");
    let mut changed: BTreeSet<Slug> = BTreeSet::new();
    let mut rescan = false;
    let mut requested = Requested::new();
    let mut wait = CHECK_EVERY;
    while shared.stopping.phase() == Phase::Working {
        watched.ping();
        match changes.recv_timeout(wait) {
            Ok(LakeChange::Keys(keys)) => changed.extend(keys.iter().filter_map(|key| pipeline_of(key))),
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

fn record(
    shared: &Shared,
    changed: &mut BTreeSet<Slug>,
    rescan: &mut bool,
    requested: &mut Requested,
) -> Result<(), String> {
    if !changed.is_empty() {
        let slugs: Vec<Slug> = changed.iter().cloned().collect();
        let since = shared.kv.extend_windows(&slugs).map_err(|e| e.to_string())?;
        for (pipeline, since) in slugs.iter().zip(since) {
            shared.state.windows.extended(pipeline, since);
        }
        changed.clear();
    }
    if *rescan {
        reconcile::after_lost_notifications(shared, requested)?;
        *rescan = false;
    }
    Ok(())
}
