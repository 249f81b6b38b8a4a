//! `lakemill pause` and `lakemill resume`: pause runs directly in the key-value store.

use std::io::Write;

use super::args::{PauseArgs, ResumeArgs};
use super::command_error::CommandError;
use super::plain::plain;
use super::services::Services;
use super::{environment, unknown};
use crate::config::OperatorConfig;
use crate::domain::name::Slug;
use crate::domain::pause::Pause;
use crate::ports::pauses::PausesInForce;
use crate::runtime::rfc3339;

/// Without a pipeline and `--all`: prints the pauses in force.
///
/// # Errors
/// The environment is invalid, the pipeline doesn't exist, or a store failed.
pub fn pause(args: &PauseArgs) -> Result<bool, CommandError> {
    let services = open(args.data.as_deref())?;
    let PauseArgs { pipeline, all, reason, .. } = args;
    if pipeline.is_none() && !all {
        let found = services.kv.pauses().map_err(|error| error.to_string())?;
        write(&found).map_err(|error| error.to_string())?;
        return Ok(true);
    }
    if let Some(slug) = pipeline
        && let Some(unknown) = unknown::message(&services, slug).map_err(|error| error.to_string())?
    {
        return Err(unknown.into());
    }
    let pause = Pause { since: services.clock.now(), reason: reason.clone() };
    services.kv.pause(pipeline.as_ref(), &pause).map_err(|error| error.to_string())?;
    say(pipeline.as_ref(), "paused")?;
    Ok(true)
}

/// False if there is no such pause, with a message on stderr.
///
/// # Errors
/// The environment is invalid, or a store failed.
pub fn resume(args: &ResumeArgs) -> Result<bool, CommandError> {
    let services = open(args.data.as_deref())?;
    let pipeline = args.pipeline.as_ref();
    let resumed = services.kv.resume(pipeline).map_err(|error| error.to_string())?;
    if resumed {
        say(pipeline, "resumed")?;
    } else {
        let _ = writeln!(std::io::stderr(), "{} not paused", subject(pipeline));
    }
    let all = services.kv.pauses().map_err(|error| error.to_string())?.all;
    if pipeline.is_some() && all.is_some() {
        let _ = writeln!(std::io::stderr(), "all pipelines are paused: end that with `lakemill resume --all`");
    }
    Ok(resumed)
}

fn open(data: Option<&std::path::Path>) -> Result<Services, CommandError> {
    let config = environment::load(data, OperatorConfig::from_env)?;
    Ok(Services::open(&config.objects, &config.kv)?)
}

fn subject(pipeline: Option<&Slug>) -> String {
    pipeline.map_or_else(|| "all pipelines are".to_owned(), |slug| format!("the pipeline `{slug}` is"))
}

fn say(pipeline: Option<&Slug>, what: &str) -> Result<(), String> {
    let runs = pipeline.map_or_else(|| "the runs of all pipelines".to_owned(), |slug| format!("the runs of `{slug}`"));
    writeln!(std::io::stdout(), "{runs} are {what}").map_err(|error| error.to_string())
}

fn write(found: &PausesInForce) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    let all = found.all.as_ref().map(|pause| ("all pipelines", pause));
    let each = found.pipelines.iter().map(|(slug, pause)| (slug.as_str(), pause));
    for (name, Pause { since, reason }) in all.into_iter().chain(each) {
        let why = if reason.is_empty() { String::new() } else { format!(": {}", plain(reason)) };
        writeln!(out, "{name}, since {}{why}", rfc3339(*since))?;
    }
    if found.all.is_none() && found.pipelines.is_empty() {
        writeln!(out, "no pipeline is paused")?;
    }
    out.flush()
}
