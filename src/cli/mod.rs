//! The subcommands: they wire the layers below, and print.

mod args;
mod backup;
mod backup_place;
mod cancel;
mod command_error;
mod demo;
mod doctor;
mod embedded;
mod enqueue;
mod environment;
mod expressions;
mod hash_password;
mod health;
mod infer;
mod jobs;
mod local;
mod location;
mod logging;
mod manual;
mod notify;
mod output;
mod pause;
mod pipeline_lock;
mod plain;
mod probe;
mod progress;
mod restore;
mod run_failure;
mod run_store;
mod serve;
mod services;
mod summary;
mod supervisor;
mod transfer_progress;
mod unknown;
mod up;
pub mod validate;
mod verify;
mod warnings;
mod web;
mod webhook;
mod worker;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use crate::config::Environment;
use crate::system::tzdata;
use args::{Args, Command};
use command_error::CommandError;

/// Runs the command line and returns the exit status: 0, 1 if the command failed, 2 for invalid arguments, 75 if a
/// signal stopped it before it was done, 78 for an invalid environment.
pub fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // Help and version also arrive here, with status 0.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    tzdata::install_newer(&Environment::zoneinfo().unwrap_or_else(|| tzdata::FOLDER.into()));
    let outcome = match &args.command {
        Command::Run(run) => local::run(run),
        Command::Up(up) => up::run(up).map(|()| true),
        Command::Worker(args) => worker::run(args),
        Command::Web => web::run().map(|()| true),
        Command::Validate { file } => expressions::processes(1).map_err(CommandError::Other).and_then(|expressions| {
            validate::run(file, &*expressions, &mut std::io::stdout().lock()).map_err(|e| e.to_string().into())
        }),
        Command::Infer(args) => infer::run(args),
        Command::Enqueue(args) => enqueue::run(args),
        Command::Jobs(args) => jobs::run(args),
        Command::Cancel(args) => cancel::run(args),
        Command::Pause(args) => pause::pause(args),
        Command::Resume(args) => pause::resume(args),
        Command::Verify(args) => verify::run(args),
        Command::Backup(args) => backup::run(args),
        Command::Restore(args) => restore::run(args),
        Command::Notify(args) => notify::run(args),
        Command::Webhook(command) => webhook::run(command),
        Command::Doctor(args) => doctor::run(args),
        Command::Health(args) => health::run(args),
        Command::Completions { shell } => manual::completions(*shell),
        Command::Man { out } => manual::pages(out.as_deref()),
        Command::HashPassword => hash_password::run(&mut std::io::stdout().lock()),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            // Nothing can be done if stderr is closed.
            let _ = writeln!(std::io::stderr(), "lakemill: {}", error.text());
            ExitCode::from(error.exit_status())
        }
    }
}
