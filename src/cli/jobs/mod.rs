//! `lakemill jobs`: what has become of a pipeline's jobs, and what goes on.

mod follow;
mod table;

use std::io::Write;

use super::args::JobsArgs;
use super::services::Services;
use super::warnings::warn;
use super::{Failure, environment};
use crate::config::OperatorConfig;
use crate::domain::job::{Job, JobStatus};
use crate::engine::history;

/// Shows the newest jobs, then, if asked to, follows the active ones. False if one of those failed, or if none is active
/// and the newest has failed.
///
/// # Errors
/// What is wrong with the environment, or what a store says.
pub fn run(args: &JobsArgs) -> Result<bool, Failure> {
    let config = environment::load(args.data.as_deref(), OperatorConfig::from_env)?;
    let services = Services::open(&config.objects, &config.kv)?;
    let page = history::page(&*services.store, &*services.kv, &args.pipeline, None, usize::from(args.limit))
        .map_err(|error| error.to_string())?;
    for (key, why) in &page.unreadable {
        warn(&format!("`{key}` is no record of a job, and passed over: {why}"));
    }
    let text = match args.json {
        true => page.jobs.iter().map(json_line).collect(),
        false => table::of(&page.jobs, services.clock.now()),
    };
    std::io::stdout().lock().write_all(text.as_bytes()).map_err(|error| error.to_string())?;
    if page.next.is_some() && !args.json {
        let _ = writeln!(std::io::stderr(), "and older ones; --limit shows more");
    }
    if page.jobs.is_empty() {
        let _ = writeln!(std::io::stderr(), "no jobs; `lakemill enqueue {}` asks for one", args.pipeline);
    }
    if !args.follow {
        return Ok(true);
    }
    let newest_failed = page.jobs.first().is_some_and(|job| job.status == JobStatus::Failed);
    let active: Vec<Job> = page.jobs.into_iter().filter(|job| !job.status.is_terminal()).collect();
    if active.is_empty() {
        return Ok(!newest_failed);
    }
    follow::run(&services, &args.pipeline, active, args.json).map_err(Failure::Other)
}

/// The job as the API has it, on one line.
fn json_line(job: &Job) -> String {
    // Neither its maps nor its numbers are such that JSON has no form for them.
    let mut line = serde_json::to_string(job).unwrap_or_default();
    line.push('\n');
    line
}
