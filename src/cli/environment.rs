//! The environment of operators' commands: of the process, or of a folder of `lakemill up`.

use std::path::Path;

use super::command_error::CommandError;
use super::embedded::Embedded;
use super::warnings::warn;
use crate::config::{Environment, EnvironmentError, WithWarnings};

/// Calls `read` with the environment of the folder `data`, or of the process.
///
/// # Errors
/// `data` is not such a folder.
pub fn with<T>(data: Option<&Path>, read: impl FnOnce(&Environment<'_>) -> T) -> Result<T, String> {
    let process = Environment::from_process();
    let Some(root) = data else { return Ok(read(&process)) };
    let embedded = Embedded::open(root)?;
    let overlay = |name: &str| embedded.variable(name, &process);
    Ok(read(&Environment { get: &overlay, read: process.read }))
}

/// Loads a config from the environment of [`with`], and prints warnings to stderr.
///
/// # Errors
/// All faults of the environment.
pub fn load<T>(
    data: Option<&Path>,
    from: impl FnOnce(&Environment<'_>) -> Result<WithWarnings<T>, EnvironmentError>,
) -> Result<T, CommandError> {
    let loaded = with(data, from)??;
    for warning in &loaded.warnings {
        warn(warning);
    }
    Ok(loaded.config)
}
