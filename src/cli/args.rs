//! The command line's words.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// Turns raw CSV files into typed, partitioned Parquet tables.
#[derive(Debug, Parser)]
#[command(name = "lakemill", version, max_term_width = 100)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

const RUN_HELP: &str = "\
A second run reads only what changed. DIR/_rejected_rows has the rejected rows and why.
Exit status: 0 done; 1 the run failed, and says why; 2 a wrong call.

Example: lakemill run shop.json --input shop --output warehouse";

const UP_HELP: &str = "\
CSVs that are put under DIR/objects/svc-lake/pipelines/<pipeline>/ become tables by themselves, seconds later.
Ctrl-C ends it once the runs that are on have ended; a second one puts them back.
Exit status: 0 ended when told to; 1 it can't start, and says why; 2 a wrong call; 78 a wrong environment.

Example: lakemill up --demo";

const WORKER_HELP: &str = "\
The variables are in the README; what is missing or malformed is told all at once.
SIGTERM ends it once the runs that are on have ended; a second one puts them back.
Exit status: 0 ended when told to; 1 it can't start, and says why; 2 a wrong call; 78 a wrong environment.";

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Convert a local folder of CSV files to a local folder of Parquet tables
    #[command(after_help = RUN_HELP)]
    Run(RunArgs),
    /// Start everything in one process, on a store and a queue in one folder
    #[command(after_help = UP_HELP)]
    Up(UpArgs),
    /// Start a worker, configured by its environment
    #[command(after_help = WORKER_HELP)]
    Worker,
    /// Check a pipeline.json: every problem at once, with its line and column
    Validate {
        /// The file to check; `-` reads standard input
        file: PathBuf,
    },
}

#[derive(Debug, clap::Args)]
pub struct UpArgs {
    /// Where objects, queue and secrets are kept; made if it is missing
    #[arg(long, value_name = "DIR", default_value = "./lakemill-data")]
    pub data: PathBuf,
    /// Lay out the sample pipeline `flights` with its CSVs, and run it
    #[arg(long)]
    pub demo: bool,
    /// The port on which the worker answers health checks and events; 0 takes any free one
    #[arg(long, value_name = "PORT", default_value_t = 8080)]
    pub worker_port: u16,
}

#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// The config, a pipeline.json
    pub file: PathBuf,
    /// The folder that the config's `files` globs are relative to; only read
    #[arg(long, value_name = "DIR")]
    pub input: PathBuf,
    /// Where the tables go (DIR/<table>/…), rejected rows (DIR/_rejected_rows/…) and manifests (DIR/_lakemill/…)
    #[arg(long, value_name = "DIR")]
    pub output: PathBuf,
    /// Convert and check everything, say what would change, write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Make every table anew and delete what no source feeds any more
    #[arg(long)]
    pub clean: bool,
    /// Take only new or changed files whose path starts with this
    #[arg(long, value_name = "PATH", default_value = "", hide_default_value = true)]
    pub prefix: String,
    /// Threads that parse and encode [default: one a core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Memory of the run in MiB; what doesn't fit waits in scratch
    #[arg(long, value_name = "MIB", default_value_t = 512, value_parser = clap::value_parser!(u64).range(64..=1_048_576))]
    pub memory: u64,
    /// No progress bar
    #[arg(long, short)]
    pub quiet: bool,
}
