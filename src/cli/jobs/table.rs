//! Formats jobs as a table.

use std::fmt::Write;

use chrono::{DateTime, Utc};
use indicatif::HumanCount;

use crate::cli::plain::plain;
use crate::config::RECLAIM_IDLE_MS_DEFAULT;
use crate::domain::job::{Job, JobStatus, Progress, Stage, TableResult, WaitReason};
use crate::domain::layout::pipeline_prefix;

/// A job's note is cut after this many characters; `--json` has all of it.
const NOTE_CHARS_MAX: usize = 160;
const HEADER: [&str; 7] = ["job", "status", "trigger", "enqueued (UTC)", "duration", "rows", ""];
/// Columns of numbers are right-aligned.
const RIGHT: [bool; 7] = [false, false, false, false, true, true, false];

/// A table of the jobs at `now`, with a pipeline column if they belong to several pipelines.
pub(super) fn format_jobs(jobs: &[Job], of_several: bool, now: DateTime<Utc>) -> String {
    if jobs.is_empty() {
        return String::new();
    }
    let mut rows = vec![HEADER.map(str::to_owned)];
    rows.extend(jobs.iter().map(|job| row(job, now)));
    if of_several {
        rows[0][0] = "pipeline/job".to_owned();
        for (row, job) in rows[1..].iter_mut().zip(jobs) {
            row[0] = format!("{}/{}", job.pipeline, row[0]);
        }
    }
    let mut out = String::new();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: [usize; HEADER.len()] = std::array::from_fn(width);
    for row in &rows {
        let mut line = String::new();
        for ((cell, width), right) in row.iter().zip(widths).zip(RIGHT) {
            let _ = if right { write!(line, "{cell:>width$}  ") } else { write!(line, "{cell:<width$}  ") };
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}

/// The job as in the API, on one line.
pub(super) fn json_line(job: &Job) -> String {
    // Serializing can't fail: maps have text keys, numbers are finite.
    let mut line = serde_json::to_string(job).unwrap_or_default();
    line.push('\n');
    line
}

fn row(job: &Job, now: DateTime<Utc>) -> [String; 7] {
    let clean = if job.clean_run { ", clean" } else { "" };
    [
        job.job_id.to_string(),
        status(job.status).to_owned(),
        format!("{}{clean}", job.trigger),
        job.enqueued_at.format("%Y-%m-%d %H:%M:%S").to_string(),
        duration_ms(job, now).map_or_else(String::new, duration),
        rows(job).map_or_else(String::new, |rows| HumanCount(rows).to_string()),
        note(job),
    ]
}

pub(super) fn status(status: JobStatus) -> &'static str {
    match status {
        JobStatus::Queued => "queued",
        JobStatus::Running => "running",
        JobStatus::Completed => "completed",
        JobStatus::Failed => "failed",
    }
}

/// The duration of an ended job, or the elapsed time of a running one.
fn duration_ms(job: &Job, now: DateTime<Utc>) -> Option<u64> {
    let since = job.started_at.filter(|_| job.status == JobStatus::Running);
    job.duration_ms.or_else(|| since.map(|since| (now - since).num_milliseconds().max(0).unsigned_abs()))
}

/// `834 ms`, `12.3 s`, `4 min 05 s`, `2 h 07 min`.
pub(super) fn duration(ms: u64) -> String {
    let s = ms / 1_000;
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{s}.{} s", ms % 1_000 / 100),
        60_000..3_600_000 => format!("{} min {:02} s", s / 60, s % 60),
        _ => format!("{} h {:02} min", s / 3_600, s % 3_600 / 60),
    }
}

/// The rows of the tables after the run, or those written so far.
fn rows(job: &Job) -> Option<u64> {
    let result = job.result.as_ref().map(|result| result.tables.values().map(|table| table.rows_written).sum());
    result.or_else(|| job.progress.as_ref().filter(|_| job.status == JobStatus::Running).map(|p| p.rows_written))
}

/// A note about the job, on one line.
pub(super) fn note(job: &Job) -> String {
    let note = match job.status {
        JobStatus::Queued => waiting(job),
        JobStatus::Running => {
            missing_heartbeat(job).or_else(|| job.progress.as_ref().map(progress)).unwrap_or_default()
        }
        JobStatus::Completed => completed(job),
        JobStatus::Failed => error(job),
    };
    let attempt = match job.status {
        JobStatus::Running if job.attempt > 1 => format!("attempt {} of {}: ", job.attempt, job.max_attempts),
        JobStatus::Running | JobStatus::Queued | JobStatus::Completed | JobStatus::Failed => String::new(),
    };
    cut(&plain(&format!("{attempt}{note}")))
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(NOTE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn waiting(job: &Job) -> String {
    let until = job.not_before.map_or_else(String::new, |time| format!(" until {}", time.format("%H:%M:%S")));
    match job.reason {
        None => String::new(),
        Some(WaitReason::PipelineBusy) => format!("waits{until}: another run of the pipeline is in progress"),
        Some(WaitReason::SourceBeingWritten) => format!("waits{until}: a source is still being written"),
        Some(WaitReason::Paused) => "waits: its runs are paused".to_owned(),
        Some(WaitReason::Retry) => {
            let why = if job.error.is_some() { error(job) } else { "requeued when its worker stopped".to_owned() };
            format!("waits{until} for attempt {} of {}: {why}", job.attempt + 1, job.max_attempts)
        }
    }
}

pub(super) fn progress(progress: &Progress) -> String {
    match progress.stage {
        Stage::Planning => "planning".to_owned(),
        Stage::Converting => format!(
            "converting {} of {} files, {} rows read",
            progress.files_done,
            progress.files_total,
            HumanCount(progress.rows_read)
        ),
        Stage::Publishing => {
            format!("publishing {} of {} partitions", progress.partitions_written, progress.partitions_total)
        }
        Stage::Finishing => "finishing".to_owned(),
    }
}

/// A note about missing heartbeats of a job's worker, and their consequence.
pub(crate) fn missing_heartbeat(job: &Job) -> Option<String> {
    let silent = duration(job.silent_ms?);
    let takeover = RECLAIM_IDLE_MS_DEFAULT / 1_000;
    Some(format!(
        "no heartbeat for {silent}; another worker takes it over after SVC_RECLAIM_IDLE_MS ({takeover} s by default)"
    ))
}

fn completed(job: &Job) -> String {
    let Some(result) = &job.result else { return String::new() };
    let sum = |of: fn(&TableResult) -> u64| result.tables.values().map(of).sum::<u64>();
    let files = sum(|table| table.sources_read);
    let is_empty = sum(|table| table.rows_written + table.rows_rejected + table.rows_filtered) == 0;
    let changed = sum(|table| table.partitions_written + table.partitions_deleted) > 0 || !result.dropped.is_empty();
    // A deletion is a change without a file to read, and a clean run ignores changes.
    let has_read = files > 0 || changed || job.clean_run;
    let own = pipeline_prefix(&job.pipeline);
    let read = match job.prefix.strip_prefix(&own).filter(|rest| !rest.is_empty()) {
        Some(prefix) if !has_read => Some(format!("no file read: no new or changed file under `{prefix}`")),
        None if !has_read => Some("no file read: no new or changed file".to_owned()),
        _ if is_empty => Some("the files read have no rows".to_owned()),
        _ => None,
    };
    let rejected = match sum(|table| table.rows_rejected) {
        0 => None,
        1 => Some("1 row rejected".to_owned()),
        n => Some(format!("{} rows rejected", HumanCount(n))),
    };
    rejected.into_iter().chain(read).collect::<Vec<String>>().join("; ")
}

fn error(job: &Job) -> String {
    let Some(error) = &job.error else { return String::new() };
    format!("{}: {}", error.code, error.message)
}

/// The full error of the newest job, if it failed: cause and advice.
pub(super) fn newest_error(jobs: &[Job]) -> Option<String> {
    let newest = jobs.iter().find(|job| job.status.is_terminal())?;
    let error = newest.error.as_ref().filter(|_| newest.status == JobStatus::Failed)?;
    let mut out = format!("{} failed: {}: {}\n", newest.job_id, error.code, plain(&error.message));
    for line in error.detail.iter().flat_map(|detail| detail.lines()) {
        let _ = writeln!(out, "  {}", plain(line));
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::job::{JobId, JobMessage, RunError, RunErrorCode, RunResult};
    use crate::domain::name::Slug;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_700_000_000 + second, 0).unwrap()
    }

    fn queued(id: &str, clean: bool, trigger: &str, second: i64) -> Job {
        let mut message = JobMessage::new(Slug::parse("trips").unwrap(), clean, trigger, at(second));
        message.job_id = JobId::parse(id).unwrap();
        Job::queued(&message, 3)
    }

    #[test]
    fn each_kind_of_job_is_one_row() {
        let error = |text: &str| RunError::new(RunErrorCode::S3Error, text);
        let mut result = RunResult::default();
        for (name, rows) in [("a", 1_000), ("b", 234_567)] {
            let table = result.tables.entry(name.into()).or_default();
            (table.rows_written, table.rows_rejected, table.sources_read) = (rows, 7, 1);
        }
        let mut running = queued("j4", false, "auto", 40).started("w", 1, 2, at(41));
        let converting = Progress { stage: Stage::Converting, files_total: 9, files_done: 4, ..Progress::default() };
        running.progress = Some(Progress { rows_read: 12_345, rows_written: 10_000, ..converting });
        let retry = queued("j3", false, "auto", 30).started("w", 1, 1, at(31));
        let jobs = [
            running,
            retry.waiting(WaitReason::Retry, at(100), Some(error("the store\nis away\u{1b}[2J"))),
            queued("j2", true, "manual", 20).waiting(WaitReason::PipelineBusy, at(50), None),
            queued("j1", false, "manual", 10).started("w", 1, 1, at(11)).failed(error(&"x".repeat(500)), at(3_700)),
            queued("j0", true, "manual", 0).started("w", 1, 1, at(1)).completed(result, at(13)),
            queued("j-", false, "manual", 0),
        ];
        let long = format!("s3_error: {}…", "x".repeat(150));
        let expected = format!(
            "\
job  status     trigger        enqueued (UTC)         duration     rows
j4   running    auto           2023-11-14 22:14:00      19.0 s   10,000  attempt 2 of 3: converting 4 of 9 files, 12,345 rows read
j3   queued     auto           2023-11-14 22:13:50                       waits until 22:15:00 for attempt 2 of 3: s3_error: the store\\nis away\\u{{1b}}[2J
j2   queued     manual, clean  2023-11-14 22:13:40                       waits until 22:14:10: another run of the pipeline is in progress
j1   failed     manual         2023-11-14 22:13:30  1 h 01 min           {long}
j0   completed  manual, clean  2023-11-14 22:13:20      12.0 s  235,567  14 rows rejected
j-   queued     manual         2023-11-14 22:13:20
"
        );
        assert_eq!(format_jobs(&jobs, false, at(60)), expected);
        assert_eq!(format_jobs(&[], false, at(60)), "");
        let several = format_jobs(&jobs[5..], true, at(60));
        assert!(several.starts_with("pipeline/job ") && several.contains("\ntrips/j-   "), "{several}");
    }

    #[test]
    fn run_without_read_files_has_a_note() {
        let done = |prefix: &str, files: u64, rows: u64| {
            let mut job = queued("j", false, "manual", 0);
            job.prefix = format!("pipelines/trips/{prefix}");
            let mut result = RunResult::default();
            let table = TableResult { sources_read: files, rows_written: rows, ..TableResult::default() };
            result.tables.insert("t".into(), table);
            note(&job.started("w", 1, 1, at(1)).completed(result, at(2)))
        };
        for (prefix, files, rows, expected) in [
            ("", 0, 9, "no file read: no new or changed file"),
            ("in/202", 0, 9, "no file read: no new or changed file under `in/202`"),
            ("in/202", 1, 9, ""),
            ("", 2, 0, "the files read have no rows"),
        ] {
            assert_eq!(done(prefix, files, rows), expected);
        }
    }

    #[test]
    fn job_without_heartbeats_shows_silence_instead_of_progress() {
        let mut job = queued("j", false, "auto", 0).started("w", 1, 2, at(1));
        job.silent_ms = Some(95_400);
        let expected = "attempt 2 of 3: no heartbeat for 1 min 35 s; another worker takes it over after \
                        SVC_RECLAIM_IDLE_MS (120 s by default)";
        assert_eq!(note(&job), expected);
        assert!(format_jobs(&[job], false, at(100)).contains(" running "), "its state remains");
    }

    #[test]
    fn durations_have_a_suitable_unit() {
        for (ms, text) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1_000, "1.0 s"),
            (59_999, "59.9 s"),
            (60_000, "1 min 00 s"),
            (3_599_999, "59 min 59 s"),
            (90_000_000, "25 h 00 min"),
        ] {
            assert_eq!(duration(ms), text);
        }
    }
}
