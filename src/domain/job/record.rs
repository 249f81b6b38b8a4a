//! The record of a job and its state machine.
//!
//! ```text
//! queued --start--> running --complete--> completed
//!   ^                  |-----fail-------> failed
//!   '---retry, defer---'
//! ```
//! `completed` and `failed` are terminal. A queued job that can't be run fails without a start.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::message::{JobId, JobMessage, TRIGGER_DRY_RUN};
use super::run::{Progress, RunError, RunResult};
use crate::domain::layout::pipeline_prefix;
use crate::domain::name::Slug;

/// The statuses of a job, as in the HTTP API and in records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobStatus {
    Queued,
    Running,
    Completed,
    Failed,
}

impl JobStatus {
    pub fn is_terminal(self) -> bool {
        match self {
            Self::Completed | Self::Failed => true,
            Self::Queued | Self::Running => false,
        }
    }
}

/// Why a queued job is not in the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Waiting")]
pub enum WaitReason {
    /// Another run of the pipeline holds its lock.
    PipelineBusy,
    /// After a transient failure.
    Retry,
    /// A source is still being written.
    SourceBeingWritten,
    /// The pipeline, or all, are paused.
    Paused,
}

impl WaitReason {
    pub const ALL: [Self; 4] = [Self::PipelineBusy, Self::Retry, Self::SourceBeingWritten, Self::Paused];

    /// The name in records and in the key-value store.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PipelineBusy => "pipeline_busy",
            Self::Retry => "retry",
            Self::SourceBeingWritten => "source_being_written",
            Self::Paused => "paused",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == text)
    }
}

/// A job in the history, the terminal record, and the live record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Job {
    #[schemars(with = "String")]
    pub job_id: JobId,
    #[schemars(with = "String")]
    pub pipeline: Slug,
    pub prefix: String,
    pub clean_run: bool,
    pub trigger: String,
    pub status: JobStatus,
    /// Starts so far that count.
    pub attempt: u32,
    pub max_attempts: u32,
    #[serde(with = "time")]
    #[schemars(with = "String")]
    pub enqueued_at: DateTime<Utc>,
    #[serde(with = "time::option", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub started_at: Option<DateTime<Utc>>,
    #[serde(with = "time::option", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub finished_at: Option<DateTime<Utc>>,
    /// From the last start to the end, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The worker that runs or ran it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<RunResult>,
    /// The job's error, or, while it waits for another attempt, that of the last attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RunError>,
    /// Earliest start of a waiting job.
    #[serde(with = "time::option", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub not_before: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<WaitReason>,
    /// For a running job whose worker has lost its lock, because it died or can't reach the key-value store: time since
    /// the last heartbeat, in milliseconds. Another worker takes the job over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent_ms: Option<u64>,
}

impl Job {
    pub fn queued(message: &JobMessage, max_attempts: u32) -> Self {
        Self {
            job_id: message.job_id.clone(),
            pipeline: message.pipeline.clone(),
            prefix: message.prefix.clone(),
            clean_run: message.clean_run,
            trigger: message.trigger.clone(),
            status: JobStatus::Queued,
            attempt: 0,
            max_attempts,
            enqueued_at: message.enqueued_at,
            started_at: None,
            finished_at: None,
            duration_ms: None,
            worker: None,
            fence: None,
            progress: None,
            result: None,
            error: None,
            not_before: None,
            reason: None,
            silent_ms: None,
        }
    }

    pub fn is_dry_run(&self) -> bool {
        self.trigger == TRIGGER_DRY_RUN
    }

    /// The message that enqueues it again.
    pub fn message(&self) -> JobMessage {
        JobMessage {
            job_id: self.job_id.clone(),
            pipeline: self.pipeline.clone(),
            prefix: self.prefix.clone(),
            clean_run: self.clean_run,
            trigger: self.trigger.clone(),
            enqueued_at: self.enqueued_at,
        }
    }

    /// Drops the lists of sources and partition changes, which can be long; the terminal record keeps them.
    pub fn without_sources(mut self) -> Self {
        for table in self.result.iter_mut().flat_map(|result| result.tables.values_mut()) {
            table.sources = Vec::new();
            table.changes.partitions = Vec::new();
        }
        self
    }

    /// The job as one of `pipeline`: a renamed or copied pipeline has jobs under its former name.
    pub fn of_pipeline(mut self, pipeline: &Slug) -> Self {
        if self.pipeline == *pipeline {
            return self;
        }
        if let Ok(relative) = self.message().relative_prefix() {
            self.prefix = format!("{}{relative}", pipeline_prefix(pipeline));
        }
        self.pipeline = pipeline.clone();
        self
    }

    pub fn started(mut self, worker: &str, fence: u64, attempt: u32, at: DateTime<Utc>) -> Self {
        debug_assert!(!self.status.is_terminal());
        self.status = JobStatus::Running;
        self.worker = Some(worker.to_owned());
        (self.fence, self.attempt) = (Some(fence), attempt);
        (self.started_at, self.not_before, self.reason) = (Some(at), None, None);
        self.progress = Some(Progress::default());
        self
    }

    pub fn completed(mut self, result: RunResult, at: DateTime<Utc>) -> Self {
        self.end(JobStatus::Completed, at);
        (self.result, self.error) = (Some(result), None);
        self
    }

    pub fn failed(mut self, error: RunError, at: DateTime<Utc>) -> Self {
        self.end(JobStatus::Failed, at);
        self.error = Some(error);
        self
    }

    /// Requeues it; it starts at `not_before` at the earliest.
    pub fn waiting(mut self, reason: WaitReason, not_before: DateTime<Utc>, error: Option<RunError>) -> Self {
        debug_assert!(!self.status.is_terminal());
        self.status = JobStatus::Queued;
        (self.started_at, self.worker, self.fence, self.progress) = (None, None, None, None);
        (self.not_before, self.reason) = (Some(not_before), Some(reason));
        if error.is_some() {
            self.error = error;
        }
        self
    }

    fn end(&mut self, status: JobStatus, at: DateTime<Utc>) {
        debug_assert!(!self.status.is_terminal());
        self.status = status;
        self.finished_at = Some(at);
        (self.not_before, self.reason) = (None, None);
        self.duration_ms = self.started_at.map(|start| (at - start).num_milliseconds().max(0).unsigned_abs());
    }
}

/// Times as RFC 3339 in UTC with milliseconds.
pub(crate) mod time {
    use chrono::{DateTime, SecondsFormat, Utc};
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(time: &DateTime<Utc>, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&time.to_rfc3339_opts(SecondsFormat::Millis, true))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<DateTime<Utc>, D::Error> {
        let text = String::deserialize(from)?;
        let time = DateTime::parse_from_rfc3339(&text).map_err(serde::de::Error::custom)?;
        Ok(time.with_timezone(&Utc))
    }

    pub(crate) mod option {
        use super::{DateTime, Deserialize, Deserializer, Serializer, Utc};

        #[expect(clippy::ref_option, reason = "the signature that serde calls")]
        pub(crate) fn serialize<S: Serializer>(time: &Option<DateTime<Utc>>, to: S) -> Result<S::Ok, S::Error> {
            match time {
                Some(time) => super::serialize(time, to),
                None => to.serialize_none(),
            }
        }

        pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<DateTime<Utc>>, D::Error> {
            #[derive(Deserialize)]
            struct Time(#[serde(with = "super")] DateTime<Utc>);
            Ok(Option::<Time>::deserialize(from)?.map(|time| time.0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::job::RunErrorCode;

    fn at(ms: i64) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(ms).unwrap()
    }

    fn queued() -> Job {
        let slug = Slug::parse("trips").unwrap();
        Job::queued(&JobMessage::new(slug, false, "manual", at(1_000)), 3)
    }

    #[test]
    fn job_is_rewritten_for_its_pipelines_new_name() {
        let (old, new) = (Slug::parse("h8").unwrap(), Slug::parse("h9").unwrap());
        for (prefix, expect) in [
            ("pipelines/h8/", "pipelines/h9/"),
            ("pipelines/h8/in/a", "pipelines/h9/in/a"),
            ("", "pipelines/h9/"),
            ("in/", "pipelines/h9/in/"),
        ] {
            let message = JobMessage { prefix: prefix.into(), ..JobMessage::new(old.clone(), false, "manual", at(0)) };
            let job = Job::queued(&message, 1).of_pipeline(&new);
            assert_eq!((job.pipeline, job.prefix.as_str()), (new.clone(), expect));
        }
    }

    fn lost() -> RunError {
        RunError::new(RunErrorCode::S3Error, "the store is away")
    }

    #[test]
    fn record_round_trips() {
        let started = queued().started("w", 7, 1, at(2_000));
        for job in [
            queued(),
            started.clone(),
            started.clone().completed(RunResult::default(), at(2_500)),
            started.clone().failed(lost(), at(3_000)),
            started.waiting(WaitReason::Retry, at(4_000), Some(lost())),
        ] {
            let text = serde_json::to_string(&job).unwrap();
            assert_eq!(serde_json::from_str::<Job>(&text).unwrap(), job, "{text}");
        }
    }

    #[test]
    fn duration_is_that_of_the_last_attempt() {
        let job = queued().started("w", 7, 1, at(2_000)).completed(RunResult::default(), at(2_345));
        assert_eq!((job.status, job.duration_ms), (JobStatus::Completed, Some(345)));
        let set_back = queued().started("w", 7, 1, at(2_000)).failed(lost(), at(1_000));
        assert_eq!(set_back.duration_ms, Some(0), "a clock that was set back");
        assert_eq!(queued().failed(lost(), at(1_000)).duration_ms, None, "it never started");
    }

    #[test]
    fn waiting_job_is_queued_with_its_last_error() {
        let job = queued().started("w", 7, 1, at(2_000)).waiting(WaitReason::Retry, at(9_000), Some(lost()));
        assert_eq!((job.status, job.attempt, job.worker.as_deref()), (JobStatus::Queued, 1, None));
        assert_eq!((job.not_before, job.reason), (Some(at(9_000)), Some(WaitReason::Retry)));
        let again = job.started("v", 8, 2, at(9_001)).waiting(WaitReason::PipelineBusy, at(9_500), None);
        assert_eq!(again.error, Some(lost()));
        assert_eq!(again.started("v", 9, 2, at(9_501)).completed(RunResult::default(), at(9_600)).error, None);
    }

    #[test]
    fn reasons_have_their_stored_names() {
        for reason in WaitReason::ALL {
            assert_eq!(WaitReason::parse(reason.as_str()), Some(reason));
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.as_str());
        }
    }
}
