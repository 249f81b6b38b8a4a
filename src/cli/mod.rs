//! The subcommands: wiring only. What they do is done by the layers below; what they say is said here.

mod args;
mod cancel;
mod child;
mod demo;
mod doctor;
mod embedded;
mod enqueue;
mod environment;
mod expressions;
mod failure;
mod hash_password;
mod health;
mod jobs;
mod local;
mod logging;
mod manual;
mod output;
mod plain;
mod probe;
mod progress;
mod serve;
mod services;
mod summary;
mod supervisor;
mod unknown;
mod up;
pub mod validate;
mod warnings;
mod web;
mod webhook;
mod worker;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use crate::config::{EXIT_STATUS, Environment, EnvironmentError};
use crate::system::tzdata;
use args::{Args, Command};

/// Runs the command line and gives the exit status: 0, 1 where the command failed, 2 for a wrong call, 78 for a wrong
/// environment.
pub fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // Help and version come this way too, with status 0.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    // A child has the data of the process that started it.
    if !matches!(args.command, Command::SqlChild(_)) {
        tzdata::install_newer(&Environment::zoneinfo().unwrap_or_else(|| tzdata::FOLDER.into()));
    }
    let done = match &args.command {
        Command::Run(run) => local::run(run).map_err(Failure::Other),
        Command::Up(up) => up::run(up).map(|()| true),
        Command::Worker => worker::run().map(|()| true),
        Command::Web => web::run().map(|()| true),
        Command::Validate { file } => expressions::processes(1).map_err(Failure::Other).and_then(|expressions| {
            validate::run(file, &*expressions, &mut std::io::stdout().lock()).map_err(|e| e.to_string().into())
        }),
        Command::Enqueue(args) => enqueue::run(args),
        Command::Jobs(args) => jobs::run(args),
        Command::Cancel(args) => cancel::run(args),
        Command::Webhook(command) => webhook::run(command),
        Command::Doctor(args) => doctor::run(args),
        Command::Health(args) => health::run(args),
        Command::Completions { shell } => manual::completions(*shell),
        Command::Man { out } => manual::pages(out.as_deref()),
        Command::SqlChild(args) => return child::run(args),
        Command::HashPassword => hash_password::run(&mut std::io::stdout().lock()),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => {
            // There is nobody to tell that nobody could be told.
            let _ = writeln!(std::io::stderr(), "lakemill: {}", failure.text());
            ExitCode::from(failure.exit_status())
        }
    }
}

/// Why a command was not done.
enum Failure {
    Environment(EnvironmentError),
    /// Names what can't be had, and what to do.
    Other(String),
}

impl Failure {
    /// Safe to show on a terminal.
    fn text(&self) -> String {
        let text = match self {
            Self::Environment(error) => error.to_string(),
            Self::Other(message) => message.clone(),
        };
        text.lines().map(plain::plain).collect::<Vec<_>>().join("\n")
    }

    fn exit_status(&self) -> u8 {
        match self {
            Self::Environment(_) => EXIT_STATUS,
            Self::Other(_) => 1,
        }
    }
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
