//! The subcommands: wiring only. What they do is done by the layers below; what they say is said here.

mod args;
mod failure;
mod local;
mod logging;
mod output;
mod plain;
mod progress;
mod services;
mod summary;
pub mod validate;
mod warnings;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

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
    let expressions = crate::sql::DuckExpressions::default();
    let done = match &args.command {
        Command::Run(run) => local::run(run, &expressions),
        Command::Validate { file } => {
            validate::run(file, &expressions, &mut std::io::stdout().lock()).map_err(|e| e.to_string())
        }
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            let _ = writeln!(std::io::stderr(), "lakemill: {message}");
            ExitCode::FAILURE
        }
    }
}
