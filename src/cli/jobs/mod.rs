//! `lakemill jobs`: lists and follows the jobs of a pipeline, or of all.

mod find;
mod follow;
mod table;

pub(super) use table::missing_heartbeat;

use std::io::Write;

use find::FoundJobs;

use super::args::JobsArgs;
use super::command_error::CommandError;
use super::services::Services;
use super::warnings::warn;
use super::{environment, unknown};
use crate::config::OperatorConfig;
use crate::domain::job::{Job, JobStatus};
use crate::domain::name::Slug;
use crate::pipelines::all_jobs::JobFilter;
use crate::pipelines::history;

/// Lists the newest jobs, then with `--follow` follows active ones. False if one of those failed, or if none is active and
/// the newest has failed.
///
/// # Errors
/// The environment is invalid, or a store failed.
pub fn run(args: &JobsArgs) -> Result<bool, CommandError> {
    let config = environment::load(args.data.as_deref(), OperatorConfig::from_env)?;
    let services = Services::open(&config.objects, &config.kv)?;
    let Some(pipeline) = &args.pipeline else {
        let found = find::newest(&services, None, job_filter(args), usize::from(args.limit))?;
        write_jobs(args, &services, &found)?;
        return Ok(true);
    };
    let found = find::newest(&services, Some(pipeline), job_filter(args), usize::from(args.limit))?;
    write_jobs(args, &services, &found)?;
    if found.jobs.is_empty() {
        return match job_filter(args) {
            JobFilter::All => no_jobs(args, pipeline, &services),
            JobFilter::Failed | JobFilter::Active => Ok(true),
        };
    }
    if !args.follow {
        if !args.json {
            write_newest_error(&found.jobs);
        }
        return Ok(true);
    }
    let newest_failed = found.jobs.first().is_some_and(|job| job.status == JobStatus::Failed);
    let active: Vec<Job> = found.jobs.into_iter().filter(|job| !job.status.is_terminal()).collect();
    if active.is_empty() {
        return Ok(!newest_failed);
    }
    let followed: Vec<Job> = active.clone();
    let good = follow::run(&services, pipeline, active, args.json).map_err(CommandError::Other)?;
    if !good && !args.json {
        let of = |job: &Job| history::record(&*services.store, &job.pipeline, &job.job_id).ok().flatten();
        write_newest_error(&followed.iter().filter_map(of).collect::<Vec<Job>>());
    }
    Ok(good)
}

fn job_filter(args: &JobsArgs) -> JobFilter {
    match (args.failed, args.active) {
        (true, _) => JobFilter::Failed,
        (false, true) => JobFilter::Active,
        (false, false) => JobFilter::All,
    }
}

/// Writes the jobs to stdout and notes to stderr.
fn write_jobs(args: &JobsArgs, services: &Services, found: &FoundJobs) -> Result<(), CommandError> {
    for (key, why) in &found.unreadable {
        warn(&format!("`{key}` is not a record of a job; skipped: {why}"));
    }
    let text = match args.json {
        true => found.jobs.iter().map(table::json_line).collect(),
        false => table::format_jobs(&found.jobs, args.all, services.clock.now()),
    };
    std::io::stdout().lock().write_all(text.as_bytes()).map_err(|error| error.to_string())?;
    let more = found.more.as_ref().filter(|_| !args.json);
    if let Some(more) = more {
        let _ = writeln!(std::io::stderr(), "{more}");
    } else if found.jobs.is_empty() && !args.json && (args.all || job_filter(args) != JobFilter::All) {
        let _ = writeln!(std::io::stderr(), "no such jobs");
    }
    Ok(())
}

fn write_newest_error(jobs: &[Job]) {
    if let Some(text) = table::newest_error(jobs) {
        // Nothing can be done if stderr is closed.
        let _ = write!(std::io::stderr(), "{text}");
    }
}

/// Reports whether the pipeline exists. False if it doesn't.
fn no_jobs(args: &JobsArgs, pipeline: &Slug, services: &Services) -> Result<bool, CommandError> {
    let unknown = unknown::message(services, pipeline).map_err(|error| error.to_string())?;
    let exists = unknown.is_none();
    let text = unknown.unwrap_or_else(|| {
        let data = args.data.as_ref().map_or_else(String::new, |data| format!(" --data {}", data.display()));
        format!("no jobs; `lakemill enqueue {pipeline}{data}` enqueues one")
    });
    let _ = writeln!(std::io::stderr(), "{text}");
    Ok(exists)
}
