//! Changed keys of windows, and of the jobs created from them.
//!
//! Invariant: a set without `is_all` has every key that an event named since its window opened.

use rusqlite::{OptionalExtension as _, params};

use crate::domain::job::changed_keys::fit;
use crate::domain::job::{ChangedKeys, JobId};
use crate::domain::name::Slug;

use super::db::KvTransaction;
use super::error::StepResult;
use super::units::sql_count;

/// Adds keys to the set of a pipeline's window. `is_new`: the window had no event before.
pub(super) fn add(step: &KvTransaction<'_>, pipeline: &Slug, changed: &ChangedKeys, is_new: bool) -> StepResult<()> {
    let sql = "SELECT id, keys, bytes FROM change_sets WHERE pipeline = ?1 AND job_id IS NULL AND NOT is_all";
    let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get(1)?, row.get(2)?));
    let count_of = |found: i64| usize::try_from(found).unwrap_or(usize::MAX);
    let ChangedKeys::Only(keys) = changed else { return change_all(step, pipeline) };
    let (set, mut count, mut bytes) = match step.sql(sql)?.query_row([pipeline.as_str()], read).optional()? {
        Some((set, keys, bytes)) => (set, count_of(keys), count_of(bytes)),
        // A window of an older version, without keys.
        None if !is_new || has_set(step, pipeline)? => return change_all(step, pipeline),
        None => {
            step.run("INSERT INTO change_sets (pipeline) VALUES (?1)", [pipeline.as_str()])?;
            (step.last_id(), 0, 0)
        }
    };
    for key in keys {
        if step.run("INSERT OR IGNORE INTO changed_keys VALUES (?1, ?2)", params![set, key])? > 0 {
            (count, bytes) = (count + 1, bytes + key.len());
        }
        if !fit(count, bytes) {
            return change_all(step, pipeline);
        }
    }
    let sql = "UPDATE change_sets SET keys = ?2, bytes = ?3 WHERE id = ?1";
    step.run(sql, params![set, sql_count(count), sql_count(bytes)])?;
    Ok(())
}

fn has_set(step: &KvTransaction<'_>, pipeline: &Slug) -> StepResult<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM change_sets WHERE pipeline = ?1 AND job_id IS NULL)";
    Ok(step.sql(sql)?.query_row([pipeline.as_str()], |row| row.get(0))?)
}

/// Makes the next window's job check all keys.
pub(super) fn change_all(step: &KvTransaction<'_>, pipeline: &Slug) -> StepResult<()> {
    forget(step, pipeline)?;
    step.run("INSERT INTO change_sets (pipeline, is_all) VALUES (?1, 1)", [pipeline.as_str()])?;
    Ok(())
}

/// Deletes the set of the pipeline's window.
pub(super) fn forget(step: &KvTransaction<'_>, pipeline: &Slug) -> StepResult<()> {
    step.run("DELETE FROM change_sets WHERE pipeline = ?1 AND job_id IS NULL", [pipeline.as_str()])?;
    Ok(())
}

/// Makes the waiting jobs and the next window of a pipeline check all keys, unless the pipeline was deleted.
pub(super) fn check_all_keys(step: &KvTransaction<'_>, pipeline: &Slug) -> StepResult<()> {
    if is_dropped(step, pipeline)? {
        return Ok(());
    }
    step.run("DELETE FROM change_sets WHERE pipeline = ?1", [pipeline.as_str()])?;
    change_all(step, pipeline)
}

/// Whether the pipeline has a tombstone.
pub(super) fn is_dropped(step: &KvTransaction<'_>, pipeline: &Slug) -> StepResult<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM tombstones WHERE pipeline = ?1 AND expires_ms > ?2)";
    Ok(step.sql(sql)?.query_row(params![pipeline.as_str(), step.now], |row| row.get(0))?)
}

/// Moves the keys of the pipeline's window, which has been closed, to its job.
pub(super) fn move_keys_to_job(step: &KvTransaction<'_>, pipeline: &Slug, job_id: &JobId) -> StepResult<()> {
    step.run(
        "UPDATE change_sets SET job_id = ?2 WHERE pipeline = ?1 AND job_id IS NULL AND NOT is_all",
        [pipeline.as_str(), job_id.as_str()],
    )?;
    forget(step, pipeline)
}

/// The keys of a job.
pub(super) fn keys_of_job(step: &KvTransaction<'_>, job_id: &JobId) -> StepResult<ChangedKeys> {
    let sql = "SELECT id FROM change_sets WHERE job_id = ?1";
    let set: Option<i64> = step.sql(sql)?.query_row([job_id.as_str()], |row| row.get(0)).optional()?;
    let Some(set) = set else { return Ok(ChangedKeys::All) };
    let mut statement = step.sql("SELECT key FROM changed_keys WHERE change_set = ?1")?;
    let keys = statement.query_map([set], |row| row.get::<_, String>(0))?;
    Ok(ChangedKeys::Only(keys.collect::<Result<_, _>>()?))
}
