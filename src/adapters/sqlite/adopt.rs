//! Adopts jobs that other programs added to the stream: creates their rows before jobs are read.

use super::db::KvTransaction;
use super::error::StepResult;
use super::kv::SqliteKv;
use super::{entries, jobs, start};
use crate::domain::job::{Job, JobMessage};
use crate::domain::limits::ATTEMPTS_DEFAULT;
use crate::ports::kv::{KvError, KvResult};

/// Entries per step, and steps per call; a later call continues.
const ENTRIES_MAX: usize = 200;
const STEPS_MAX: usize = 50;

impl SqliteKv {
    /// If the file can't be written, the entries become jobs when they are claimed.
    ///
    /// # Errors
    /// `Unavailable`, `Malformed`.
    pub(super) fn adopt(&self) -> KvResult<()> {
        for _ in 0..STEPS_MAX {
            if !self.db.read("check for foreign jobs", any_new)? {
                break;
            }
            match self.db.write("adopt jobs", adopt_some) {
                Ok(()) => {}
                Err(error @ KvError::Refused { .. }) => {
                    tracing::debug!(%error, "jobs of other programs not adopted; they are shown once claimed");
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Whether the stream has entries that were not checked.
fn any_new(step: &KvTransaction<'_>) -> StepResult<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM stream WHERE id > (SELECT entry FROM adopted))";
    Ok(step.sql(sql)?.query_row([], |row| row.get(0))?)
}

fn adopt_some(step: &KvTransaction<'_>) -> StepResult<()> {
    let attempts_max = jobs::attempts_max(step)?.unwrap_or(ATTEMPTS_DEFAULT);
    for entry in entries::after_adopted(step, ENTRIES_MAX)? {
        let Some(number) = entries::number(&entry.id) else { continue };
        step.run("UPDATE adopted SET entry = ?1", [number])?;
        let fields = entry.fields.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let Some(message) = JobMessage::parse(fields, entry.received_at).message() else { continue };
        // A job older than its pipeline's tombstone is dropped when it starts.
        if jobs::find(step, &message.job_id)?.is_none() && !start::is_dropped(step, &message)? {
            jobs::insert(step, &Job::queued(&message, attempts_max), Some(number))?;
        }
    }
    Ok(())
}
