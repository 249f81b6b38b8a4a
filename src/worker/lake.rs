//! Listens to a lake that tells by itself what came into it.

use std::collections::BTreeSet;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError};

use super::Shared;
use super::reconcile::{self, Seen};
use super::retrying::Outage;
use super::stopping::Phase;
use crate::domain::layout::pipeline_of;
use crate::domain::name::Slug;
use crate::ports::store::LakeChange;
use crate::runtime::WatchedThread;

/// How long it takes to notice that the worker is to end.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Pause after a failure.
const PAUSE: Duration = Duration::from_secs(5);

/// Listens until the worker is told to end, or nothing can come any more. What could not be passed on yet is kept.
pub(super) fn run(shared: &Shared, changes: &Receiver<LakeChange>, watched: &WatchedThread) {
    let mut outage = Outage::new("passing on what came into the lake");
    let mut changed: BTreeSet<Slug> = BTreeSet::new();
    let mut rescan = false;
    let mut seen = Seen::new();
    let mut wait = LOOK_EVERY;
    while shared.stopping.phase() == Phase::Working {
        watched.ping();
        match changes.recv_timeout(wait) {
            Ok(LakeChange::Keys(keys)) => changed.extend(keys.iter().filter_map(|key| pipeline_of(key))),
            Ok(LakeChange::Rescan) => rescan = true,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        wait = match watched.waiting(|| pass_on(shared, &mut changed, &mut rescan, &mut seen)) {
            Ok(()) => {
                outage.over();
                LOOK_EVERY
            }
            Err(error) => {
                outage.tell(&error);
                // News that come meanwhile wait too.
                shared.stopping.wait_for(Phase::Drain, PAUSE);
                Duration::ZERO
            }
        };
    }
}

fn pass_on(shared: &Shared, changed: &mut BTreeSet<Slug>, rescan: &mut bool, seen: &mut Seen) -> Result<(), String> {
    if !changed.is_empty() {
        let slugs: Vec<Slug> = changed.iter().cloned().collect();
        let since = shared.kv.extend_windows(&slugs).map_err(|e| e.to_string())?;
        for (pipeline, since) in slugs.iter().zip(since) {
            shared.state.windows.extended(pipeline, since);
        }
        changed.clear();
    }
    if *rescan {
        reconcile::after_lost_news(shared, seen)?;
        *rescan = false;
    }
    Ok(())
}
