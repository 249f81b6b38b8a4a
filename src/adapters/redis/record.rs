//! Records of jobs: JSON under `live`, merged with the hash under `message`.

use crate::domain::job::{Job, JobMessage, JobStatus, ParsedEntry, WaitReason};
use crate::ports::kv::KvResult;

use super::error::malformed;
use super::reply::OperationReply;

/// Replies about a job: its live record, seven fields of its hash, and the fields of its message.
pub(super) const PARTS: usize = 8 + JobMessage::FIELDS.len();

/// The live record.
pub(super) fn encode(job: &Job) -> String {
    // A job has only text, numbers and times, which JSON can always represent.
    serde_json::to_string(job).unwrap_or_default()
}

/// `since_heartbeat`: ms since the last heartbeat of a claimed job that doesn't hold the lock. `parts`: the live record, then of
/// the message's hash: `not_before`, `reason`, `attempts`, `max_attempts`, `running`, `worker`, `started_at`, and the
/// fields of the message. `None` if all are missing.
pub(super) fn decode(since_heartbeat: OperationReply, parts: [OperationReply; PARTS]) -> KvResult<Option<Job>> {
    let attempts_max = if parts[4].is_nil() { None } else { u32::try_from(parts[4].count()?).ok() };
    let Some(mut job) = merged(parts)? else { return Ok(None) };
    if let Some(attempts_max) = attempts_max.filter(|_| !job.status.is_terminal()) {
        job.max_attempts = attempts_max;
    }
    // Negative if Redis's clock was set back.
    let since_heartbeat = if since_heartbeat.is_nil() {
        None
    } else {
        Some(u64::try_from(since_heartbeat.number()?).unwrap_or_default())
    };
    job.silent_ms = since_heartbeat.filter(|_| job.status == JobStatus::Running);
    Ok(Some(job))
}

fn merged(parts: [OperationReply; PARTS]) -> KvResult<Option<Job>> {
    let [live, not_before, reason, attempts, max_attempts, running, worker, started_at, message @ ..] = parts;
    let job = match live.optional_text()? {
        Some(text) => Some(parse(live.operation(), &text)?),
        None => rebuild(&max_attempts, message)?,
    };
    let Some(mut job) = job else { return Ok(None) };
    let running = if running.is_nil() { None } else { Some(running.count()?) };
    // The run has not written a record yet: the current one is of the previous run.
    let is_new = running.is_some() && job.fence != running;
    if job.status.is_terminal() {
        if !is_new && not_before.is_nil() {
            return Ok(Some(job));
        }
        job = without_outcome(job);
    }
    (job.not_before, job.reason) = (None, None);
    if !attempts.is_nil() {
        job.attempt = u32::try_from(attempts.count()?).unwrap_or(u32::MAX);
    }
    if let Some(fence) = running.filter(|_| is_new) {
        let attempt = job.attempt;
        job = job.started(&worker.text()?, fence, attempt, started_at.time()?);
    }
    if not_before.is_nil() {
        return Ok(Some(job));
    }
    let due = not_before.time()?;
    let reason = reason.optional_text()?.and_then(|text| WaitReason::parse(&text)).unwrap_or(WaitReason::Retry);
    Ok(Some(job.waiting(reason, due, None)))
}

/// Resets a job whose worker wrote its outcome, but died before ending it.
fn without_outcome(job: Job) -> Job {
    Job { status: JobStatus::Queued, finished_at: None, duration_ms: None, result: None, error: None, ..job }
}

fn parse(operation: &'static str, text: &str) -> KvResult<Job> {
    serde_json::from_str(text).map_err(|_| malformed(operation, "a job as JSON", text))
}

/// Rebuilds a job without a live record from its message.
fn rebuild(
    max_attempts: &OperationReply,
    message: [OperationReply; JobMessage::FIELDS.len()],
) -> KvResult<Option<Job>> {
    let [job_id, received_at] = [&message[0], &message[5]];
    if job_id.is_nil() {
        return Ok(None);
    }
    let mut fields = Vec::new();
    for (name, value) in JobMessage::FIELDS.into_iter().zip(&message) {
        if let Some(value) = value.optional_text()? {
            fields.push((name, value));
        }
    }
    let operation = received_at.operation();
    let fields = fields.iter().map(|(name, value)| (*name, value.as_str()));
    match JobMessage::parse(fields, chrono::DateTime::UNIX_EPOCH) {
        ParsedEntry::Job(message) | ParsedEntry::Refused(message, _) => {
            let max = if max_attempts.is_nil() { 0 } else { max_attempts.count()? };
            Ok(Some(Job::queued(&message, u32::try_from(max).unwrap_or(u32::MAX))))
        }
        ParsedEntry::Invalid(why) => Err(malformed(operation, "the message of a job", &why)),
    }
}
