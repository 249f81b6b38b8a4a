//! The environment of an operator's command: the process's own, or that of a folder of `lakemill up`.

use std::path::Path;

use super::command_error::CommandError;
use super::embedded::Embedded;
use super::warnings::warn;
use crate::config::{Environment, EnvironmentError, Loaded};

/// Gives `read` the environment that stands for `data`, the folder, or without one the process's.
///
/// # Errors
/// A message if `data` is no such folder.
pub fn with<T>(data: Option<&Path>, read: impl FnOnce(&Environment<'_>) -> T) -> Result<T, String> {
    let process = Environment::of_process();
    let Some(root) = data else { return Ok(read(&process)) };
    let embedded = Embedded::open(root)?;
    let overlay = |name: &str| embedded.variable(name, &process);
    Ok(read(&Environment { get: &overlay, read: process.read }))
}

/// Loads a config from the environment of [`with`] and warns on stderr of what was adjusted.
///
/// # Errors
/// Everything that is wrong with it.
pub fn load<T>(
    data: Option<&Path>,
    from: impl FnOnce(&Environment<'_>) -> Result<Loaded<T>, EnvironmentError>,
) -> Result<T, CommandError> {
    let loaded = with(data, from)??;
    for warning in &loaded.warnings {
        warn(warning);
    }
    Ok(loaded.config)
}
