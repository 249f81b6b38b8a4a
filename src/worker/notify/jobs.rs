//! The notifications that the end of a job causes.

use std::collections::BTreeSet;

use super::{Condition, RUN_PAUSES, STATE_PAUSES, end, link, raise, subject};
use crate::domain::job::{Job, RunError, RunErrorCode, RunResult};
use crate::domain::name::Slug;
use crate::domain::notification::{Notification, NotificationEvent};
use crate::domain::pipeline::NotifyEvent;
use crate::domain::pipeline::document::NotifyDocument;
use crate::domain::pipeline::validate::unchecked;
use crate::domain::text::{clipped, counted};
use crate::pipelines::tables::TableStore;
use crate::ports::kv::KvResult;
use crate::worker::config;
use crate::worker::shared::WorkerShared;

/// Sources and columns that a text lists.
const LISTED_MAX: usize = 10;
/// Columns of a drift that are remembered.
const COLUMNS_MAX: usize = 1_000;

/// Records the conditions that a job's end begins or ends. Idempotent.
pub fn ended(shared: &WorkerShared, job: &Job) -> KvResult<()> {
    if shared.targets.is_empty() {
        return Ok(());
    }
    let wanted = events(config::read_text(shared, &job.pipeline).ok().as_deref());
    let notification = |event: NotificationEvent, title: &str, text: &str| Notification {
        pipeline: Some(job.pipeline.clone()),
        job_id: Some(job.job_id.clone()),
        link: link(shared, &job.pipeline, Some(&job.job_id)),
        ..Notification::new(event, job.finished_at.unwrap_or(shared.clock.now()), title, text)
    };
    let pipeline = &job.pipeline;
    let (run, stuck) = (format!("run:{pipeline}"), stuck_key(pipeline));
    let of = |key| Condition { key, pauses: RUN_PAUSES, fence: job.fence };
    let recovered = notification(NotificationEvent::Recovered, &format!("{pipeline}: runs complete again"), "");
    let recovered = wanted.contains(&NotifyEvent::Recovered).then_some(&recovered);
    match (&job.error, &job.result) {
        // Only the person who started it is interested.
        _ if job.is_dry_run() => {}
        // A person wanted it.
        (Some(error), _) if error.code == RunErrorCode::Cancelled => {}
        (Some(error), _) if wanted.contains(&NotifyEvent::RunFailed) => {
            let title = format!("{pipeline}: run failed ({})", error.code);
            raise(
                shared,
                of(&run),
                &[],
                &notification(NotificationEvent::RunFailed, &title, &failure_text(job, error)),
            )?;
        }
        (Some(_), _) => {}
        (None, result) => {
            end(shared, of(&run), true, recovered)?;
            if let Some(result) = result {
                rejects(shared, job, result, &wanted, &notification)?;
                drift(shared, job, result, &wanted, &notification)?;
            }
        }
    }
    let stuck = Condition { key: &stuck, pauses: STATE_PAUSES, fence: job.fence };
    let ended =
        notification(NotificationEvent::Recovered, &format!("{pipeline}: the run that was stuck has ended"), "");
    end(shared, stuck, false, recovered.map(|_| &ended))
}

/// The condition of a run without progress.
pub(super) fn stuck_key(pipeline: &Slug) -> String {
    format!("stuck:{pipeline}")
}

/// The events that a config wants notifications of: all if it can't be read.
pub(super) fn events(config: Option<&str>) -> BTreeSet<NotifyEvent> {
    let all = || BTreeSet::from(NotifyEvent::ALL);
    let document = config.map(unchecked).unwrap_or_default();
    let Some(found) = document.get("notify") else { return all() };
    match serde_json::from_value::<Vec<NotifyDocument>>(found.clone()) {
        Ok(chosen) => chosen.into_iter().map(NotifyEvent::from).collect(),
        Err(_) => all(),
    }
}

fn failure_text(job: &Job, error: &RunError) -> String {
    let mut lines = vec![error.message.clone()];
    lines.extend(error.detail.as_deref().map(clipped));
    let attempts = format!("attempt {} of {}", job.attempt, job.max_attempts);
    lines.push(format!("Job {}, {attempts}, trigger {}.", job.job_id, clipped(&job.trigger)));
    lines.join("\n")
}

type NewNotification<'a> = dyn Fn(NotificationEvent, &str, &str) -> Notification + 'a;

/// Rows of the sources that the run read.
fn rejects(
    shared: &WorkerShared,
    job: &Job,
    result: &RunResult,
    wanted: &BTreeSet<NotifyEvent>,
    notification: &NewNotification<'_>,
) -> KvResult<()> {
    let key = format!("rejects:{}", job.pipeline);
    let condition = Condition { key: &key, pauses: RUN_PAUSES, fence: job.fence };
    let sources = || result.tables.values().flat_map(|table| &table.sources);
    let rejected: u64 = sources().map(|source| source.rows_rejected).sum();
    if rejected > 0 && wanted.contains(&NotifyEvent::RowsRejected) {
        let title = format!("{}: {}", job.pipeline, counted(rejected, "row rejected", "rows rejected"));
        let with = || sources().filter(|source| source.rows_rejected > 0);
        let line = |source: &crate::domain::job::SourceResult| format!("{}: {}", source.source, source.rows_rejected);
        let mut lines: Vec<String> = with().take(LISTED_MAX).map(line).collect();
        let more = with().count().saturating_sub(LISTED_MAX);
        lines.extend((more > 0).then(|| format!("and {}", counted(more as u64, "more file", "more files"))));
        return raise(
            shared,
            condition,
            &[],
            &notification(NotificationEvent::RowsRejected, &title, &lines.join("\n")),
        );
    }
    match result.tables.values().any(|table| table.sources_read > 0) {
        true => end(shared, condition, false, None),
        false => Ok(()),
    }
}

/// Columns of the tables' sources that the config doesn't have. One notification for each.
fn drift(
    shared: &WorkerShared,
    job: &Job,
    result: &RunResult,
    wanted: &BTreeSet<NotifyEvent>,
    notification: &NewNotification<'_>,
) -> KvResult<()> {
    let read = result.tables.iter().any(|(_, table)| table.sources_read > 0);
    if !read || !wanted.contains(&NotifyEvent::Drift) {
        return Ok(());
    }
    let mut columns = Vec::new();
    for table in result.tables.keys() {
        match (TableStore::new(&*shared.store, &job.pipeline, table)).root() {
            Ok(found) => {
                let names = found.readable().into_iter().flat_map(|root| root.extra_columns.keys());
                columns.extend(names.map(|column| format!("{table}.{column}")));
            }
            // The next run does it.
            Err(error) => {
                tracing::warn!(pipeline = %job.pipeline, table, %error, "manifest not readable; drift not checked");
                return Ok(());
            }
        }
    }
    columns.truncate(COLUMNS_MAX);
    let key = format!("drift:{}", job.pipeline);
    let condition = Condition { key: &key, pauses: RUN_PAUSES, fence: job.fence };
    if columns.is_empty() {
        return end(shared, condition, false, None);
    }
    let known = subject(shared, &key)?;
    let new: Vec<&String> = columns.iter().filter(|column| !known.contains(column)).collect();
    if new.is_empty() {
        return Ok(());
    }
    let count = counted(new.len() as u64, "column is not", "columns are not");
    let title = format!("{}: {count} in the config", job.pipeline);
    let mut lines: Vec<String> = new.iter().take(LISTED_MAX).map(|column| (*column).clone()).collect();
    lines.extend((new.len() > LISTED_MAX).then(|| format!("and {} more", new.len() - LISTED_MAX)));
    lines.push("Add them to the config, or leave them out of the files.".to_owned());
    raise(shared, condition, &columns, &notification(NotificationEvent::Drift, &title, &lines.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_all_unless_a_readable_config_chooses() {
        let all = BTreeSet::from(NotifyEvent::ALL);
        for text in [None, Some("{"), Some("{}"), Some(r#"{"notify": 1}"#), Some(r#"{"notify": ["nonsense"]}"#)] {
            assert_eq!(events(text), all, "{text:?}");
        }
        assert_eq!(events(Some(r#"{"notify": []}"#)), BTreeSet::new());
        let chosen = events(Some(r#"{"notify": ["drift", "run_failed"]}"#));
        assert_eq!(chosen, BTreeSet::from([NotifyEvent::Drift, NotifyEvent::RunFailed]));
    }
}
