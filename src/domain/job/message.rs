//! The stream message of a job: six fields, all strings.
//!
//! Written with `enqueued_at` as RFC 3339 in UTC and `clean_run` as `true` or `false`. Other producers' forms are accepted
//! too; an invalid message becomes a failed job if its pipeline is known.

use std::fmt;

use chrono::{DateTime, Datelike, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};

use super::run::{RunError, RunErrorCode};
use crate::domain::layout::pipeline_prefix;
use crate::domain::limits::{JOB_ID_BYTES_MAX, KEY_BYTES_MAX, TRIGGER_BYTES_MAX};
use crate::domain::name::Slug;
use crate::domain::text::clipped;

/// The trigger of a run that a person requested.
pub const TRIGGER_MANUAL: &str = "manual";
/// The trigger of an automatic run.
pub const TRIGGER_AUTO: &str = "auto";
/// The trigger of a run that writes nothing: it converts all files with the config at
/// [`dry_run_config_key`](crate::domain::layout::dry_run_config_key).
pub const TRIGGER_DRY_RUN: &str = "dry_run";

/// Identifies a job: 1 to 64 of `A-Z`, `a-z`, `0-9`, `_` and `-`. New ones are UUIDv7.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct JobId(String);

/// The text isn't a job id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{found}` is not a job id: expected 1 to 64 of A-Z, a-z, 0-9, `_` and `-`")]
pub struct JobIdError {
    pub found: String,
}

impl JobId {
    /// A new id, which sorts after all before it.
    pub fn mint() -> Self {
        Self(uuid::Uuid::now_v7().to_string())
    }

    /// # Errors
    /// [`JobIdError`] quotes what was found.
    pub fn parse(text: &str) -> Result<Self, JobIdError> {
        let fits = (1..=JOB_ID_BYTES_MAX).contains(&text.len());
        if fits && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-') {
            return Ok(Self(text.to_owned()));
        }
        Err(JobIdError { found: clipped(text) })
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for JobId {
    type Error = JobIdError;
    fn try_from(text: String) -> Result<Self, JobIdError> {
        Self::parse(&text)
    }
}

impl From<JobId> for String {
    fn from(id: JobId) -> Self {
        id.0
    }
}

/// A request for a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobMessage {
    pub job_id: JobId,
    pub pipeline: Slug,
    /// A key prefix in the lake, `pipelines/<slug>/` for the whole pipeline; see [`JobMessage::relative_prefix`].
    pub prefix: String,
    pub clean_run: bool,
    pub trigger: String,
    pub enqueued_at: DateTime<Utc>,
}

/// A parsed entry of the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParsedEntry {
    Job(JobMessage),
    /// A job that can't be run; it fails with the error.
    Refused(JobMessage, RunError),
    /// The entry has no valid job id or pipeline.
    Invalid(String),
}

impl ParsedEntry {
    /// The message, if a pipeline owns the job.
    pub fn message(self) -> Option<JobMessage> {
        match self {
            Self::Job(message) | Self::Refused(message, _) => Some(message),
            Self::Invalid(_) => None,
        }
    }
}

impl JobMessage {
    /// A run of the whole pipeline.
    pub fn new(pipeline: Slug, clean_run: bool, trigger: &str, enqueued_at: DateTime<Utc>) -> Self {
        let prefix = pipeline_prefix(&pipeline);
        Self { job_id: JobId::mint(), pipeline, prefix, clean_run, trigger: trigger.to_owned(), enqueued_at }
    }

    pub fn is_dry_run(&self) -> bool {
        self.trigger == TRIGGER_DRY_RUN
    }

    /// Whether no person or program requested the run; see [`order`](super::order).
    pub fn is_automatic(&self) -> bool {
        self.trigger == TRIGGER_AUTO
    }

    /// Names of the fields of the stream entry, in the contract's order. All code that names them, including Redis
    /// scripts, uses these.
    pub const FIELDS: [&'static str; 6] = ["job_id", "pipeline", "prefix", "clean_run", "trigger", "enqueued_at"];

    /// The fields of the stream entry, in the contract's order.
    pub fn fields(&self) -> [(&'static str, String); Self::FIELDS.len()] {
        let [job_id, pipeline, prefix, clean_run, trigger, enqueued_at] = Self::FIELDS;
        [
            (job_id, self.job_id.to_string()),
            (pipeline, self.pipeline.to_string()),
            (prefix, self.prefix.clone()),
            (clean_run, self.clean_run.to_string()),
            (trigger, self.trigger.clone()),
            (enqueued_at, self.enqueued_at.to_rfc3339_opts(SecondsFormat::Millis, true)),
        ]
    }

    /// The part of [`JobMessage::prefix`] below `pipelines/<slug>/`; `""` is everything. Another prefix counts as relative.
    ///
    /// # Errors
    /// `invalid_job` if the prefix is that of another pipeline.
    pub fn relative_prefix(&self) -> Result<&str, RunError> {
        let own = pipeline_prefix(&self.pipeline);
        if own.starts_with(&self.prefix) {
            return Ok("");
        }
        match self.prefix.strip_prefix(&own) {
            Some(rest) => Ok(rest),
            None if self.prefix.starts_with("pipelines/") => {
                Err(refusal(format!("prefix: expected one that starts with `{own}`, found `{}`", self.prefix)))
            }
            None => Ok(&self.prefix),
        }
    }

    /// Parses an entry. `received_at` replaces a missing or invalid `enqueued_at`; unknown fields are ignored, and the first
    /// of duplicate fields counts.
    pub fn parse<'a>(fields: impl IntoIterator<Item = (&'a str, &'a str)>, received_at: DateTime<Utc>) -> ParsedEntry {
        let fields: Vec<(&str, &str)> = fields.into_iter().collect();
        let get = |name: &str| fields.iter().find(|(n, _)| *n == name).map(|(_, value)| *value);
        let job_id = match get("job_id").map(JobId::parse) {
            Some(Ok(id)) => id,
            Some(Err(error)) => return ParsedEntry::Invalid(error.to_string()),
            None => return ParsedEntry::Invalid("the field `job_id` is missing".into()),
        };
        let pipeline = match get("pipeline").map(Slug::parse) {
            Some(Ok(slug)) => slug,
            Some(Err(error)) => return ParsedEntry::Invalid(error.to_string()),
            None => return ParsedEntry::Invalid("the field `pipeline` is missing".into()),
        };
        let clean_run = get("clean_run").map_or(Ok(false), parse_bool);
        let prefix = get("prefix").map_or_else(|| pipeline_prefix(&pipeline), str::to_owned);
        let message = Self {
            job_id,
            prefix: if prefix.len() <= KEY_BYTES_MAX { prefix.clone() } else { pipeline_prefix(&pipeline) },
            pipeline,
            clean_run: clean_run.clone().unwrap_or(false),
            trigger: get("trigger").and_then(trigger).unwrap_or(TRIGGER_MANUAL).to_owned(),
            enqueued_at: get("enqueued_at").and_then(time).unwrap_or(received_at),
        };
        let too_long = prefix.len() > KEY_BYTES_MAX;
        let problem = match clean_run {
            Err(found) => Some(refusal(format!("clean_run: expected `true` or `false`, found `{found}`"))),
            Ok(_) if too_long => {
                Some(refusal(format!("prefix: expected at most {KEY_BYTES_MAX} bytes, found {}", prefix.len())))
            }
            Ok(_) => message.relative_prefix().err(),
        };
        match problem {
            Some(error) => ParsedEntry::Refused(message, error),
            None => ParsedEntry::Job(message),
        }
    }
}

fn refusal(message: String) -> RunError {
    RunError::new(RunErrorCode::InvalidJob, message).detail(
        "correct the program that enqueues the job, and enqueue \
     it again",
    )
}

fn parse_bool(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" => Ok(true),
        "false" | "0" | "" => Ok(false),
        _ => Err(clipped(text)),
    }
}

fn trigger(text: &str) -> Option<&str> {
    let fits = (1..=TRIGGER_BYTES_MAX).contains(&text.len());
    (fits && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.:".contains(&b))).then_some(text)
}

/// RFC 3339, or milliseconds since 1970.
fn time(text: &str) -> Option<DateTime<Utc>> {
    let time = match text.parse::<i64>() {
        Ok(ms) => DateTime::from_timestamp_millis(ms),
        Err(_) => DateTime::parse_from_rfc3339(text).ok().map(|time| time.with_timezone(&Utc)),
    };
    // RFC 3339, the form in records, has years of four digits.
    time.filter(|time| (0..=9999).contains(&time.year()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(ms).unwrap()
    }

    fn parse(fields: &[(&str, &str)]) -> ParsedEntry {
        JobMessage::parse(fields.iter().copied(), at(7))
    }

    #[test]
    fn message_round_trips() {
        let slug = Slug::parse("trips").unwrap();
        let mut message = JobMessage::new(slug, true, TRIGGER_AUTO, at(1_700_000_000_123));
        message.prefix = "pipelines/trips/2024/".into();
        let fields = message.fields();
        let read = JobMessage::parse(fields.iter().map(|(n, v)| (*n, v.as_str())), at(0));
        assert_eq!(read, ParsedEntry::Job(message));
    }

    #[test]
    fn id_and_slug_are_enough_and_unknown_fields_are_ignored() {
        let ParsedEntry::Job(job) = parse(&[("pipeline", "a"), ("job_id", "J-1_x"), ("colour", "red")]) else {
            panic!()
        };
        assert_eq!((job.prefix.as_str(), job.clean_run, job.trigger.as_str()), ("pipelines/a/", false, "manual"));
        assert_eq!(job.enqueued_at, at(7));
    }

    #[test]
    fn booleans_and_times_are_accepted_in_every_common_form() {
        for (text, clean) in [("TRUE", true), ("True", true), ("1", true), ("false", false), ("0", false), ("", false)]
        {
            let ParsedEntry::Job(job) = parse(&[("job_id", "j"), ("pipeline", "a"), ("clean_run", text)]) else {
                panic!()
            };
            assert_eq!(job.clean_run, clean, "{text}");
        }
        for (text, ms) in [
            ("1970-01-01T01:00:01+01:00", 1_000),
            ("1500", 1_500),
            ("yesterday", 7),
            ("", 7),
            ("1700000000000000", 7),
            ("-99999999999999", 7),
        ] {
            let fields = [("job_id", "j"), ("pipeline", "a"), ("enqueued_at", text)];
            let ParsedEntry::Job(job) = parse(&fields) else { panic!() };
            assert_eq!(job.enqueued_at, at(ms), "{text}");
        }
    }

    #[test]
    fn entries_without_an_owner_are_dead_letters_with_a_reason() {
        let long = "j".repeat(65);
        for (fields, part) in [
            (vec![], "`job_id` is missing"),
            (vec![("job_id", "j")], "`pipeline` is missing"),
            (vec![("job_id", "a b"), ("pipeline", "a")], "`a b` is not a job id"),
            (vec![("job_id", long.as_str()), ("pipeline", "a")], "is not a job id"),
            (vec![("job_id", "j"), ("pipeline", "../x")], "`../x` is not a slug"),
        ] {
            let ParsedEntry::Invalid(why) = parse(&fields) else { panic!("{fields:?}") };
            assert!(why.contains(part), "{why}");
        }
    }

    #[test]
    fn malformed_job_fails_if_its_pipeline_is_known() {
        let huge = format!("pipelines/a/{}", "x".repeat(KEY_BYTES_MAX));
        for (field, value, part) in [
            ("clean_run", "yes", "found `yes`"),
            ("prefix", "pipelines/b/", "found `pipelines/b/`"),
            ("prefix", huge.as_str(), "at most 1024 bytes"),
        ] {
            let ParsedEntry::Refused(job, error) = parse(&[("job_id", "j"), ("pipeline", "a"), (field, value)]) else {
                panic!("{field}={value}")
            };
            assert_eq!((job.pipeline.as_str(), error.code), ("a", RunErrorCode::InvalidJob));
            assert!(error.message.contains(part), "{}", error.message);
        }
    }

    #[test]
    fn prefix_is_relative_to_the_pipeline() {
        for (prefix, relative) in [
            ("pipelines/a/", ""),
            ("", ""),
            ("pipelines/", ""),
            ("pipelines/a", ""),
            ("pipelines/a/in/", "in/"),
            ("in/", "in/"),
        ] {
            let fields = [("job_id", "j"), ("pipeline", "a"), ("prefix", prefix)];
            let ParsedEntry::Job(job) = parse(&fields) else { panic!("{prefix}") };
            assert_eq!(job.relative_prefix(), Ok(relative), "{prefix}");
        }
    }
}
