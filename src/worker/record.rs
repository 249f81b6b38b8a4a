//! Records new objects of the lake in the debounce windows of their pipelines.

use super::events::EventSummary;
use super::state::WorkerState;
use crate::domain::job::ChangedKeys;
use crate::domain::name::Slug;
use crate::ports::kv::KvResult;
use crate::ports::schedule::Schedule;

/// Extends the windows of the pipelines that got new objects, and counts the events.
///
/// # Errors
/// Errors of the key-value store; then nothing is counted.
pub(super) fn record_events(kv: &dyn Schedule, state: &WorkerState, summary: EventSummary) -> KvResult<()> {
    let changes: Vec<_> = summary.changes.into_iter().map(|(pipeline, keys)| (pipeline, keys.bounded())).collect();
    record_changes(kv, state, &changes)?;
    state.count_events(summary.accepted, summary.ignored);
    Ok(())
}

/// Extends the windows of pipelines whose objects changed, if there are any.
///
/// # Errors
/// Errors of the key-value store.
pub(super) fn record_changes(kv: &dyn Schedule, state: &WorkerState, changes: &[(Slug, ChangedKeys)]) -> KvResult<()> {
    if changes.is_empty() {
        return Ok(());
    }
    let since = kv.record_changes(changes)?;
    for ((pipeline, _), since) in changes.iter().zip(since) {
        state.windows.extended(pipeline, since);
    }
    Ok(())
}
