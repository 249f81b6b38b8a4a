//! `lakemill worker`: a worker configured by its environment.

use super::command_error::CommandError;
use super::serve::Serving;
use super::services::Services;
use super::supervisor::{Notices, ServiceNotifier};
use super::{expressions, logging};
use crate::config::{Environment, WorkerConfig};

/// Serves until it is stopped.
///
/// # Errors
/// What can't be started, and why.
pub fn run() -> Result<(), CommandError> {
    let loaded = WorkerConfig::from_env(&Environment::of_process())?;
    logging::start(&loaded.config.log, Services::clock());
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    let services = Services::open(&loaded.config.objects, &loaded.config.kv)?;
    let notices = Notices::new();
    let expressions = expressions::processes_of_worker(loaded.config.concurrency)?;
    let serving = Serving::start(&loaded.config, &services, expressions, "PORT", notices.notifier())?;
    let supervisor = ServiceNotifier::start(serving.watched(), notices);
    serving.wait(|| {});
    drop(supervisor);
    Ok(())
}
