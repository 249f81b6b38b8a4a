//! `lakemill worker`: a worker configured by its environment.

use super::args::WorkerArgs;
use super::command_error::CommandError;
use super::serve::Serving;
use super::services::Services;
use super::supervisor::{Notices, ServiceNotifier};
use super::{expressions, logging};
use crate::config::{Environment, WorkerConfig};
use crate::worker::{Lifetime, WorkerState};

/// Serves until it is stopped, or until nothing is left to do. False if a job failed by then.
///
/// # Errors
/// The part that can't be started, and the reason. `Interrupted` if work remains.
pub fn run(args: &WorkerArgs) -> Result<bool, CommandError> {
    let loaded = WorkerConfig::from_env(&Environment::from_process())?;
    logging::start(&loaded.config.log, Services::clock());
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    let lifetime = match args.drain || args.once {
        true => Lifetime::UntilDrained { compare: args.once },
        false => Lifetime::UntilStopped,
    };
    let services = Services::open(&loaded.config.objects, &loaded.config.kv)?;
    let notices = Notices::new();
    let expressions = expressions::processes_of_worker(loaded.config.concurrency)?;
    let serving = Serving::start(&loaded.config, &services, expressions, "PORT", notices.notifier(), lifetime)?;
    let supervisor = ServiceNotifier::start(serving.watched(), notices);
    let state = serving.state();
    serving.wait(|| {});
    drop(supervisor);
    match lifetime {
        Lifetime::UntilStopped => Ok(true),
        Lifetime::UntilDrained { .. } => drained(&state),
    }
}

fn drained(state: &WorkerState) -> Result<bool, CommandError> {
    let (counts, is_drained) = (state.counts(), state.is_drained());
    let (completed, failed) = (counts.completed, counts.failed);
    tracing::info!(completed, failed, is_drained, "jobs of this worker");
    match (state.has_given_up(), is_drained) {
        (true, _) => Ok(false),
        (false, true) => Ok(true),
        (false, false) => {
            Err(CommandError::Interrupted("stopped by a signal before everything was done; start it again".to_owned()))
        }
    }
}
