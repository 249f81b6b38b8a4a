//! Child processes in which commands and services check and evaluate expressions.

use std::sync::Arc;

use crate::config::Environment;
use crate::sql::sandbox::expressions::IDLE_MAX;
use crate::sql::sandbox::{ChildProgram, ExpressionLimits, SandboxExpressions};

/// Processes in addition to those of the converting threads, to check requests and starting jobs.
const CHECKS_MAX: usize = 16;

/// For `threads` threads that evaluate concurrently. Starts no process yet.
///
/// # Errors
/// This program can't be found.
pub fn processes(threads: usize) -> Result<Arc<SandboxExpressions>, String> {
    let program = program()?;
    let environment = Environment::loader_variables();
    let limits = ExpressionLimits::default();
    Ok(Arc::new(SandboxExpressions::new(program, threads.saturating_add(CHECKS_MAX), environment, limits)))
}

/// For a worker with `concurrency` concurrent jobs, which share the machine's threads.
///
/// # Errors
/// Same as for [`processes`]; `lakemill-sql` is missing.
pub fn processes_of_worker(concurrency: usize) -> Result<Arc<SandboxExpressions>, String> {
    program()?.find()?;
    // A job has at least one thread, and keeps idle ones for its next task.
    processes(available_threads().saturating_add((1 + IDLE_MAX) * concurrency))
}

/// The program of child processes that belongs to this program.
///
/// # Errors
/// This program can't be found.
pub fn program() -> Result<ChildProgram, String> {
    let own = std::env::current_exe().map_err(|error| format!("finding this program: {error}"))?;
    Ok(ChildProgram::of(&own))
}

/// Threads that this machine runs in parallel.
pub fn available_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
