//! Adopts jobs that other programs added to the stream: creates their records before jobs are read.
//!
//! A cursor marks the entries that were checked. Reading and creating are separate steps, because the fields are parsed
//! here, like at a claim; the second step creates a record only if the entry still exists and its job has none.

use super::keys::{ACTIVE, ADOPTED, LIVE, MESSAGE, STREAM, TOMBSTONE};
use super::kv::RedisKv;
use super::record::encode;
use super::scripts::{self, Call};
use super::stream::entry;
use crate::domain::job::{Job, JobMessage};
use crate::domain::limits::{ATTEMPTS_DEFAULT, JOB_ID_BYTES_MAX, KEY_BYTES_MAX};
use crate::ports::jobs::JobRegistry as _;
use crate::ports::kv::{KvError, KvResult};

/// Entries per step, and steps per call; a later call continues.
const ENTRIES_MAX: usize = 100;
const STEPS_MAX: usize = 100;
/// Bytes of a field that are read: more than a valid field can have.
const VALUE_BYTES_MAX: usize = 2 * KEY_BYTES_MAX;

impl RedisKv {
    /// If the server rejects it, the entries become jobs when they are claimed.
    ///
    /// # Errors
    /// `Unavailable`.
    pub(super) fn adopt(&self) -> KvResult<()> {
        for _ in 0..STEPS_MAX {
            match self.adopt_some() {
                Ok(true) => {}
                Ok(false) => break,
                Err(error @ KvError::Unavailable { .. }) => return Err(error),
                Err(error) => {
                    tracing::debug!(%error, "jobs of other programs not adopted; they are shown once claimed");
                    break;
                }
            }
        }
        Ok(())
    }

    /// Whether more entries may follow.
    fn adopt_some(&self) -> KvResult<bool> {
        let unadopted = Call::new(&scripts::UNADOPTED, [STREAM, ADOPTED])
            .arg(MESSAGE)
            .arg(ENTRIES_MAX)
            .arg(JOB_ID_BYTES_MAX)
            .arg(VALUE_BYTES_MAX)
            .run(&self.pool)?;
        let [last, found] = unadopted.parts()?;
        let Some(last) = last.optional_text()? else { return Ok(false) };
        let mut jobs = Vec::new();
        let mut attempts_max = ATTEMPTS_DEFAULT;
        for reply in found.list()? {
            let Some(entry) = entry(reply)? else { continue };
            let fields = entry.fields.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            let Some(message) = JobMessage::parse(fields, entry.received_at).message() else { continue };
            if jobs.is_empty() {
                attempts_max = self.attempts_max()?.unwrap_or(ATTEMPTS_DEFAULT);
            }
            jobs.push((entry.id.0, Job::queued(&message, attempts_max)));
        }
        let mut call = Call::new(&scripts::ADOPT, [STREAM, ADOPTED])
            .arg(last)
            .arg(attempts_max)
            .arg(LIVE)
            .arg(MESSAGE)
            .arg(ACTIVE)
            .arg(TOMBSTONE);
        for (entry, job) in jobs {
            call = call
                .arg(entry)
                .arg(&job.job_id)
                .arg(&job.pipeline)
                .arg(job.enqueued_at.timestamp_millis())
                .arg(encode(&job))
                .fields(job.message().fields());
        }
        call.run(&self.pool)?.count()?;
        Ok(true)
    }
}
