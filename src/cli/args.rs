//! The command line's words.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use clap_complete::Shell;

use crate::domain::job::JobId;
use crate::domain::limits::HISTORY_PAGE_JOBS_MAX;
use crate::domain::name::Slug;

const STATUSES: &str = "\
Exit status: 0 done; 1 the command failed, and says why; 2 a wrong call; 78 a wrong environment.
`lakemill COMMAND --help` says more.";

/// Turns raw CSV files into typed, partitioned Parquet tables.
#[derive(Debug, Parser)]
#[command(name = "lakemill", version, max_term_width = 100, after_help = STATUSES)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

const RUN_HELP: &str = "\
A second run reads only what changed. DIR/_rejected_rows has the rejected rows and why.
Exit status: 0 done; 1 the run failed, and says why; 2 a wrong call.

Example: lakemill run shop.json --input shop --output warehouse";

const UP_HELP: &str = "\
CSVs that are put under DIR/objects/svc-lake/pipelines/<pipeline>/ become tables by themselves,
seconds later. Ctrl-C ends it once the runs that are on have ended; a second one puts them back.
Exit status: 0 ended when told to; 1 it can't start, and says why; 2 a wrong call; 78 a wrong
environment.

Example: lakemill up --demo";

const WORKER_HELP: &str = "\
docs/configuration.md has the variables; what is missing or malformed is told all at once. SIGTERM
ends it once the runs that are on have ended; a second one puts them back.
Exit status: 0 ended when told to; 1 it can't start, and says why; 2 a wrong call; 78 a wrong
environment.";

const WEB_HELP: &str = "\
docs/configuration.md has the variables; what is missing or malformed is told all at once. SIGTERM
ends it once the requests that are on have ended; a second one ends it at once.
Exit status: 0 ended when told to; 1 it can't start, and says why; 2 a wrong call; 78 a wrong
environment.";

const HASH_HELP: &str = "\
On a terminal the password is asked for twice and not shown; otherwise it is the first line of
standard input. The hash is the value of SVC_ADMIN_PASSWORD_HASH.
Exit status: 0 done; 1 the password can't be used, and why; 2 a wrong call.";

const ENQUEUE_HELP: &str = "\
Needs the environment of the object store (S3_BUCKET_…, OBJ_…) and KV_URL, or --data.
Exit status: 0 queued; 1 it failed, and says why; 2 a wrong call; 78 a wrong environment.

Example: lakemill enqueue flights --clean && lakemill jobs flights --follow";

const JOBS_HELP: &str = "\
Needs the environment of the object store (S3_BUCKET_…, OBJ_…) and KV_URL, or --data.
Exit status: 0 done; 1 it failed, or a job that was followed did; 2 a wrong call; 78 a wrong
environment.

Example: lakemill jobs flights --json | jq .error";

const CANCEL_HELP: &str = "\
A job that waits ends soon, as failed with the code `cancelled`; one that runs stops within seconds,
unless it is publishing. Needs the environment of the object store (S3_BUCKET_…, OBJ_…) and KV_URL,
or --data.
Exit status: 0 asked for; 1 it can't be cancelled (any more), and why; 2 a wrong call; 78 a wrong
environment.";

const HEALTH_HELP: &str = "\
For the health check of a container, say: HEALTHCHECK CMD [\"lakemill\", \"health\"]
Without --url it asks this machine at PORT and SVC_BIND; without PORT at 8080, then at 3000. It asks
/livez, which the process answers by itself; of an URL with a path it asks that, e.g. /readyz.
Exit status: 0 it answers with 200; 1 it doesn't, and what it does; 2 a wrong call; 78 a wrong
environment.";

const COMPLETIONS_HELP: &str = "\
Exit status: 0 done; 2 a wrong call.

Example: lakemill completions bash > /usr/share/bash-completion/completions/lakemill";

const MAN_HELP: &str = "\
Exit status: 0 done; 1 the pages can't be written, and why; 2 a wrong call.

Example: lakemill man --out /usr/local/share/man/man1";

const WEBHOOK_HELP: &str = "\
Needs the environment of the object store (S3_BUCKET_…, OBJ_…).
Exit status: 0 done; 1 it failed, and says why; 2 a wrong call; 78 a wrong environment.";

const DOCTOR_HELP: &str = "\
Each check says ok, skipped, warning or problem, and what to do. Small objects are written to the
buckets and deleted again. With --data it checks what a `lakemill up` runs: store and queue in its
folder, and the ports that it has, or had when it last ran.
Exit status: 0 no problem; 1 at least one; 2 a wrong call.";

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
    /// Start a web service, configured by its environment
    #[command(after_help = WEB_HELP)]
    Web,
    /// Check a pipeline.json or a dashboard: every problem at once, with line and column
    Validate {
        /// The file to check; `-` reads standard input
        file: PathBuf,
    },
    /// Ask for a run of a pipeline and print the job's id
    #[command(after_help = ENQUEUE_HELP)]
    Enqueue(EnqueueArgs),
    /// Show the jobs of a pipeline, or of all, newest first
    #[command(after_help = JOBS_HELP, override_usage = "lakemill jobs [OPTIONS] <SLUG | --all>")]
    Jobs(JobsArgs),
    /// Cancel a job that waits or runs
    #[command(after_help = CANCEL_HELP)]
    Cancel(CancelArgs),
    /// Have the object store tell the worker of new files
    #[command(subcommand, after_help = WEBHOOK_HELP)]
    Webhook(WebhookCommand),
    /// Check everything that the services depend on, and say what to do
    #[command(after_help = DOCTOR_HELP)]
    Doctor(DoctorArgs),
    /// Ask whether a service answers, for health checks
    #[command(after_help = HEALTH_HELP)]
    Health(HealthArgs),
    /// Run people's SQL for the web service, which starts it
    #[command(hide = true)]
    SqlChild(SqlChildArgs),
    /// Print the hash of a password, for SVC_ADMIN_PASSWORD_HASH
    #[command(after_help = HASH_HELP)]
    HashPassword,
    /// Print what makes a shell complete the words of a call
    #[command(after_help = COMPLETIONS_HELP)]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page, or write those of all commands
    #[command(after_help = MAN_HELP)]
    Man {
        /// Write a page for each command to this folder, made if it is missing
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
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
    /// The port of the web service; 0 takes any free one
    #[arg(long, value_name = "PORT", default_value_t = 3000)]
    pub port: u16,
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
    /// Print the result as JSON, as the record of a job has it
    #[arg(long)]
    pub json: bool,
    /// No progress bar
    #[arg(long, short)]
    pub quiet: bool,
}

#[derive(Debug, clap::Args)]
pub struct EnqueueArgs {
    /// The pipeline
    #[arg(value_name = "SLUG", value_parser = Slug::parse)]
    pub pipeline: Slug,
    /// Make every table anew and delete what no source feeds any more
    #[arg(long)]
    pub clean: bool,
    /// Take only new or changed files whose key starts with this, below pipelines/SLUG/
    #[arg(long, value_name = "PREFIX", default_value = "", hide_default_value = true)]
    pub prefix: String,
    /// Of the folder of a `lakemill up`, instead of what the environment names
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub struct JobsArgs {
    /// The pipeline
    #[arg(value_name = "SLUG", value_parser = Slug::parse, required_unless_present = "all")]
    pub pipeline: Option<Slug>,
    /// Of all pipelines, at most 1,000 of them
    #[arg(long, conflicts_with_all = ["pipeline", "follow"])]
    pub all: bool,
    /// Only jobs that failed
    #[arg(long, conflicts_with_all = ["active", "follow"])]
    pub failed: bool,
    /// Only jobs that wait or run
    #[arg(long)]
    pub active: bool,
    /// How many jobs
    #[arg(long, value_name = "N", default_value_t = 20,
          value_parser = clap::value_parser!(u16).range(1..=HISTORY_PAGE_JOBS_MAX as i64))]
    pub limit: u16,
    /// Show the progress of active jobs until none is left
    #[arg(long)]
    pub follow: bool,
    /// One JSON object a line instead of a table
    #[arg(long)]
    pub json: bool,
    /// Of the folder of a `lakemill up`, instead of what the environment names
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub struct CancelArgs {
    /// The pipeline
    #[arg(value_name = "SLUG", value_parser = Slug::parse)]
    pub pipeline: Slug,
    /// The job's id, as `lakemill jobs` shows it
    #[arg(value_name = "JOB", value_parser = JobId::parse)]
    pub job_id: JobId,
    /// Of the folder of a `lakemill up`, instead of what the environment names
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub struct HealthArgs {
    /// Where the service is, e.g. http://127.0.0.1:3000
    #[arg(long)]
    pub url: Option<String>,
    /// Seconds to wait for the answer
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=300))]
    pub timeout: u64,
}

#[derive(Debug, clap::Args)]
pub struct SqlChildArgs {
    pub memory_bytes: u64,
    pub threads: usize,
    pub parent: u32,
    /// Folder of the time-zone data
    pub zones: PathBuf,
    /// Check and evaluate expressions, instead of running statements over the files of the working folder
    #[arg(long)]
    pub expressions: bool,
}

#[derive(Debug, clap::Args)]
pub struct DoctorArgs {
    /// One JSON document instead of lines
    #[arg(long)]
    pub json: bool,
    /// Of the folder of a `lakemill up`, instead of what the environment names
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
}

/// Longest ARN, in bytes.
const ARN_BYTES_MAX: usize = 2_048;

const INSTALL_HELP: &str = "\
ARN names the webhook target that the store has been given, e.g. arn:minio:sqs::lakemill:webhook.
It must post to the worker's /events/s3 with SVC_WEBHOOK_SECRET as its token. Rules of others on
the bucket stay as they are; ours are replaced, so that the call can be repeated.";

#[derive(Debug, Subcommand)]
pub enum WebhookCommand {
    /// Put the rule on the lake bucket: objects created under pipelines/ that end in .csv
    #[command(after_help = INSTALL_HELP)]
    Install {
        /// The store's webhook target
        #[arg(long, value_parser = arn)]
        arn: String,
        /// Also for .csv.gz and .csv.zst
        #[arg(long)]
        compressed: bool,
    },
    /// Show the rules of the lake bucket
    Show,
    /// Remove every rule of the lake bucket, asking first if there are rules of others
    Remove {
        /// Don't ask
        #[arg(long)]
        yes: bool,
    },
}

fn arn(text: &str) -> Result<String, String> {
    let printable = text.chars().all(|c| c.is_ascii_graphic());
    match text.starts_with("arn:") && printable && text.len() <= ARN_BYTES_MAX {
        true => Ok(text.to_owned()),
        false => Err(format!("expected `arn:…` of at most {ARN_BYTES_MAX} bytes, without blanks")),
    }
}
