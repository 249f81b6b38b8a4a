//! Claims entries in the order of jobs.

use std::collections::BTreeSet;
use std::time::Duration;

use rusqlite::{OptionalExtension as _, params};

use crate::domain::job::{ClaimOrder, JobId, WaitReason, retry};
use crate::domain::name::Slug;
use crate::ports::jobs::{ClaimLimits, Entry};

use super::db::KvTransaction;
use super::error::StepResult;
use super::units::{after, slug};
use super::{entries, locks};

/// Whether there are entries that may be claimed.
pub(super) fn any(step: &KvTransaction<'_>, limits: ClaimLimits) -> StepResult<bool> {
    Ok(entries::oldest_unclaimed(step, false, 0)?.is_some()
        || limits.automatic > 0 && entries::oldest_unclaimed(step, true, 0)?.is_some())
}

pub(super) fn claim(
    step: &KvTransaction<'_>,
    consumer: &str,
    limits: ClaimLimits,
    order: &mut ClaimOrder,
) -> StepResult<Vec<Entry>> {
    let (mut claimed, mut automatic_left) = (Vec::new(), limits.automatic);
    let mut taken = BTreeSet::new();
    while claimed.len() < limits.entries.max(1) {
        let manual = head(step, false, &taken)?;
        let automatic = if automatic_left > 0 { head(step, true, &taken)? } else { None };
        let (next, is_automatic) = match (manual, automatic) {
            (None, None) => break,
            (None, Some(automatic)) => {
                order.reset();
                (automatic, true)
            }
            (Some(manual), None) => {
                if automatic_left > 0 {
                    order.reset();
                }
                (manual, false)
            }
            (Some(manual), Some(automatic)) => match order.is_automatic_next(automatic.entry < manual.entry) {
                true => (automatic, true),
                false => (manual, false),
            },
        };
        automatic_left -= usize::from(is_automatic);
        taken.extend(next.pipeline);
        claimed.extend(entries::claim(step, consumer, next.entry)?);
    }
    Ok(claimed)
}

/// An entry that may be claimed.
struct Candidate {
    entry: i64,
    /// `None` for an entry without a job.
    pipeline: Option<Slug>,
}

/// The oldest entry of a kind whose pipeline is neither locked nor taken. Defers the jobs of locked ones before it.
fn head(step: &KvTransaction<'_>, automatic: bool, taken: &BTreeSet<Slug>) -> StepResult<Option<Candidate>> {
    let mut after_entry = 0;
    while let Some(entry) = entries::oldest_unclaimed(step, automatic, after_entry)? {
        after_entry = entry;
        let sql = "SELECT job_id, pipeline, running IS NULL FROM jobs WHERE entry = ?1";
        let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get(2)?));
        let Some((job_id, pipeline, is_new)) = step.sql(sql)?.query_row([entry], read).optional()? else {
            return Ok(Some(Candidate { entry, pipeline: None }));
        };
        let pipeline = slug(&pipeline)?;
        if taken.contains(&pipeline) {
            continue;
        }
        // The start of a job that ran before records that its process died.
        let lock = if is_new { locks::current(step, &pipeline)? } else { None };
        match lock.filter(|lock| lock.job_id.as_deref() != Some(job_id.as_str())) {
            Some(lock) => {
                let left = Duration::from_millis(lock.expires.abs_diff(step.now));
                defer(step, entry, after(step.now, retry::defer_delay(left)))?;
            }
            None => return Ok(Some(Candidate { entry, pipeline: Some(pipeline) })),
        }
    }
    Ok(None)
}

/// Makes the job of an unclaimed entry wait for its pipeline's lock.
fn defer(step: &KvTransaction<'_>, entry: i64, due: i64) -> StepResult<()> {
    step.run(
        "UPDATE jobs SET entry = NULL, due_ms = ?2, reason = ?3 WHERE entry = ?1",
        params![entry, due, WaitReason::PipelineBusy.as_str()],
    )?;
    entries::remove(step, entry)?;
    Ok(())
}

/// Makes the queued jobs of a pipeline wait, except one that starts.
pub(super) fn defer_others(step: &KvTransaction<'_>, pipeline: &Slug, starts: &JobId, ttl: Duration) -> StepResult<()> {
    let sql = "SELECT entry FROM jobs JOIN stream ON stream.id = jobs.entry
               WHERE pipeline = ?1 AND job_id <> ?2 AND running IS NULL AND consumer IS NULL";
    let mut statement = step.sql(sql)?;
    let found = statement.query_map([pipeline.as_str(), starts.as_str()], |row| row.get(0))?;
    let found = found.collect::<Result<Vec<i64>, _>>()?;
    let due = after(step.now, retry::defer_delay(ttl));
    found.into_iter().try_for_each(|entry| defer(step, entry, due))
}
