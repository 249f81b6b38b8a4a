//! Jobs that other programs put into the stream: their records are made before anybody looks for them.
//!
//! A cursor says which entries were looked at. Looking and making are two steps, so that the fields are read here, as
//! they are at a claim; the second makes a record only if the entry is still there and its job has none.

use super::keys::{ACTIVE, ADOPTED, LIVE, MESSAGE, STREAM, TOMBSTONE};
use super::kv::RedisKv;
use super::record::encode;
use super::scripts::{self, Call};
use super::stream::entry;
use crate::domain::job::{Job, JobMessage};
use crate::domain::limits::{ATTEMPTS_DEFAULT, JOB_ID_BYTES_MAX, KEY_BYTES_MAX};
use crate::ports::jobs::JobRegistry as _;
use crate::ports::kv::{KvError, KvResult};

/// Entries of one step, and steps of one look; a later look goes on.
const ENTRIES_MAX: usize = 100;
const STEPS_MAX: usize = 100;
/// Bytes of a field that are looked at: more than any may have.
const VALUE_BYTES_MAX: usize = 2 * KEY_BYTES_MAX;

impl RedisKv {
    /// Where the server refuses it, the entries become jobs when they are claimed.
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
                    tracing::debug!(%error, "jobs of other programs show only once they are claimed");
                    break;
                }
            }
        }
        Ok(())
    }

    /// Whether there may be more entries.
    fn adopt_some(&self) -> KvResult<bool> {
        let looked = Call::new(&scripts::UNADOPTED, [STREAM, ADOPTED])
            .arg(MESSAGE)
            .arg(ENTRIES_MAX)
            .arg(JOB_ID_BYTES_MAX)
            .arg(VALUE_BYTES_MAX)
            .run(&self.pool)?;
        let [last, found] = looked.parts()?;
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
