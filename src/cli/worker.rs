//! `lakemill worker`: the worker of the contract, configured by its environment.

use super::serve::Serving;
use super::services::Services;
use super::supervisor::{Ends, Supervisor};
use super::{Failure, expressions, logging};
use crate::config::{Environment, WorkerConfig};

/// Serves until it is told to end.
///
/// # Errors
/// What can't be started, and why.
pub fn run() -> Result<(), Failure> {
    let loaded = WorkerConfig::from_env(&Environment::of_process())?;
    logging::start(&loaded.config.log, Services::clock());
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    let services = Services::open(&loaded.config.objects, &loaded.config.kv)?;
    let ends = Ends::new();
    let expressions = expressions::processes_of_worker(loaded.config.concurrency)?;
    let serving = Serving::start(&loaded.config, &services, expressions, "PORT", ends.teller())?;
    let supervisor = Supervisor::start(serving.watched(), ends);
    serving.wait(|| {});
    drop(supervisor);
    Ok(())
}
