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
use crate::domain::layout::pipeline_prefix;
use crate::domain::limits::LIST_PAGE_KEYS_MAX;
use crate::engine::history;
use crate::ports::store::Bucket;

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
        return no_jobs(args, &services);
    }
    if !args.follow {
        if !args.json {
            tell_newest_error(&page.jobs);
        }
        return Ok(true);
    }
    let newest_failed = page.jobs.first().is_some_and(|job| job.status == JobStatus::Failed);
    let active: Vec<Job> = page.jobs.into_iter().filter(|job| !job.status.is_terminal()).collect();
    if active.is_empty() {
        return Ok(!newest_failed);
    }
    let followed: Vec<Job> = active.clone();
    let good = follow::run(&services, &args.pipeline, active, args.json).map_err(Failure::Other)?;
    if !good && !args.json {
        let of = |job: &Job| history::record(&*services.store, &job.pipeline, &job.job_id).ok().flatten();
        tell_newest_error(&followed.iter().filter_map(of).collect::<Vec<Job>>());
    }
    Ok(good)
}

fn tell_newest_error(jobs: &[Job]) {
    if let Some(text) = table::newest_error(jobs) {
        // There is nobody to tell that nobody could be told.
        let _ = write!(std::io::stderr(), "{text}");
    }
}

/// Says whether there is such a pipeline at all. False if there is none.
fn no_jobs(args: &JobsArgs, services: &Services) -> Result<bool, Failure> {
    let listed = |bucket, prefix: &str| {
        services.store.list(bucket, prefix, Some('/'), None, LIST_PAGE_KEYS_MAX).map_err(|error| error.to_string())
    };
    let own = pipeline_prefix(&args.pipeline);
    let mut exists = false;
    for bucket in Bucket::ALL {
        let page = listed(bucket, &own)?;
        exists = exists || !page.objects.is_empty() || !page.prefixes.is_empty();
    }
    let text = if exists {
        let data = args.data.as_ref().map_or_else(String::new, |data| format!(" --data {}", data.display()));
        format!("no jobs; `lakemill enqueue {}{data}` asks for one", args.pipeline)
    } else {
        let page = listed(Bucket::Pipelines, "pipelines/")?;
        let name =
            |prefix: &String| prefix.strip_prefix("pipelines/").map(|name| name.trim_end_matches('/').to_owned());
        let names: Vec<String> = page.prefixes.iter().filter_map(name).collect();
        let there =
            if names.is_empty() { "there are none yet".into() } else { format!("there are {}", names.join(", ")) };
        format!("there is no pipeline `{}`; {there}", args.pipeline)
    };
    let _ = writeln!(std::io::stderr(), "{text}");
    Ok(exists)
}

/// The job as the API has it, on one line.
fn json_line(job: &Job) -> String {
    // Neither its maps nor its numbers are such that JSON has no form for them.
    let mut line = serde_json::to_string(job).unwrap_or_default();
    line.push('\n');
    line
}
