//! `lakemill enqueue`: enqueues a run directly in the key-value store.

use std::io::Write;

use super::args::EnqueueArgs;
use super::command_error::CommandError;
use super::services::Services;
use super::warnings::warn;
use super::{environment, unknown};
use crate::config::OperatorConfig;
use crate::domain::job::message::TRIGGER_MANUAL;
use crate::domain::job::{Job, JobMessage};
use crate::domain::layout::{config_key, pipeline_prefix};
use crate::domain::limits::KEY_BYTES_MAX;
use crate::domain::name::Slug;
use crate::ports::jobs::EnqueueOutcome;
use crate::ports::store::Bucket;

/// Prints the job's id on stdout. A missing config, or a prefix without files, is only a warning: either may be added
/// before the run starts.
///
/// # Errors
/// The prefix or the environment is invalid, the pipeline doesn't exist, or the key-value store failed.
pub fn run(args: &EnqueueArgs) -> Result<bool, CommandError> {
    let prefix = whole_prefix(&args.pipeline, &args.prefix)?;
    let config = environment::load(args.data.as_deref(), OperatorConfig::from_env)?;
    let services = Services::open(&config.objects, &config.kv)?;
    let mut message = JobMessage::new(args.pipeline.clone(), args.clean, TRIGGER_MANUAL, services.clock.now());
    message.prefix = prefix;
    message.relative_prefix().map_err(|error| format!("--prefix: {}", error.message))?;
    // Without the object store the run is enqueued with a warning.
    if let Ok(Some(unknown)) = unknown::message(&services, &args.pipeline) {
        let config = config_key(&args.pipeline);
        return Err(format!(
            "{unknown}\n\
         A new pipeline starts with its config: create one at `{config}`"
        )
        .into());
    }
    let job = Job::queued(&message, config.attempts_max);
    match services.kv.enqueue(&job).map_err(|error| error.to_string())? {
        EnqueueOutcome::Queued | EnqueueOutcome::AlreadyActive => {}
    }
    writeln!(std::io::stdout(), "{}", job.job_id).map_err(|error| error.to_string())?;
    warn_of_config(&services, &args.pipeline);
    warn_of_prefix(&services, &job);
    Ok(true)
}

/// The prefix from the lake's root, as in jobs.
fn whole_prefix(pipeline: &Slug, prefix: &str) -> Result<String, String> {
    let own = pipeline_prefix(pipeline);
    let whole = if prefix.starts_with("pipelines/") { prefix.to_owned() } else { format!("{own}{prefix}") };
    match whole.len() <= KEY_BYTES_MAX {
        true => Ok(whole),
        false => Err(format!("--prefix: expected at most {KEY_BYTES_MAX} bytes with `{own}`, found {}", whole.len())),
    }
}

fn warn_of_config(services: &Services, pipeline: &Slug) {
    let key = config_key(pipeline);
    let warning = match services.store.head(Bucket::Pipelines, &key) {
        Ok(Some(_)) => return,
        Ok(None) => {
            format!(
                "the pipeline `{pipeline}` has no config: the run will fail unless one is created at `{key}` \
             before"
            )
        }
        Err(error) => format!("reading the config of the pipeline `{pipeline}` failed, so it may be missing: {error}"),
    };
    warn(&warning);
}

/// Otherwise a mistyped prefix would only show in the record of the run.
fn warn_of_prefix(services: &Services, job: &Job) {
    // A clean run ignores the prefix.
    if job.clean_run || job.prefix == pipeline_prefix(&job.pipeline) {
        return;
    }
    // Errors of the store are reported with the config.
    if let Ok(page) = services.store.list(Bucket::Lake, &job.prefix, None, None, 1)
        && page.objects.is_empty()
    {
        warn(&format!("no file of the lake starts with `{}`: the run will have no new file to read", job.prefix));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_may_start_at_the_root_or_at_the_pipeline() {
        let slug = Slug::parse("trips").unwrap();
        for (given, whole) in [
            ("", "pipelines/trips/"),
            ("2024/", "pipelines/trips/2024/"),
            ("pipelines/trips/2024/", "pipelines/trips/2024/"),
            ("pipelines/other/", "pipelines/other/"),
        ] {
            assert_eq!(whole_prefix(&slug, given).as_deref(), Ok(whole));
        }
        assert!(whole_prefix(&slug, &"x".repeat(KEY_BYTES_MAX)).is_err());
    }
}
