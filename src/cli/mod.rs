//! The subcommands: wiring only. What they do is done by the layers below; what they say is said here.

mod args;
mod demo;
mod embedded;
mod failure;
mod local;
mod logging;
mod output;
mod plain;
mod progress;
mod serve;
mod services;
mod summary;
mod up;
pub mod validate;
mod warnings;
mod worker;

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;

use crate::config::{EXIT_STATUS, EnvironmentError};
use args::{Args, Command};

/// Runs the command line and gives the exit status: 0, 1 where the command failed, 2 for a wrong call.
pub fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // Help and version come this way too, with status 0.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let expressions = Arc::new(crate::sql::DuckExpressions::default());
    let done = match &args.command {
        Command::Run(run) => local::run(run, &*expressions),
        Command::Up(up) => return ended(up::run(up, expressions)),
        Command::Worker => return ended(worker::run(expressions)),
        Command::Validate { file } => {
            validate::run(file, &*expressions, &mut std::io::stdout().lock()).map_err(|e| e.to_string())
        }
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => failed(&message),
    }
}

fn ended(how: Result<(), Failure>) -> ExitCode {
    match how {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Environment(error)) => {
            let _ = writeln!(std::io::stderr(), "lakemill: {error}");
            ExitCode::from(EXIT_STATUS)
        }
        Err(Failure::Other(message)) => failed(&message),
    }
}

fn failed(message: &str) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "lakemill: {message}");
    ExitCode::FAILURE
}

/// Why a service didn't start.
enum Failure {
    Environment(EnvironmentError),
    /// Names what can't be had, and what to do.
    Other(String),
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self::Other(message)
    }
}

impl From<EnvironmentError> for Failure {
    fn from(error: EnvironmentError) -> Self {
        Self::Environment(error)
    }
}
