//! The command line's arguments and help.

use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser as _};
use clap::{ArgGroup, Parser, Subcommand};
use clap_complete::Shell;

use super::location::Location;
use crate::domain::arn::Arn;
use crate::domain::job::JobId;
use crate::domain::limits::{HISTORY_PAGE_JOBS_MAX, NOTIFICATIONS_MAX, PAUSE_REASON_BYTES_MAX};
use crate::domain::name::Slug;

const STATUSES: &str = "\
Exit status: 0 success; 1 the command failed; 2 invalid arguments; 75 a signal stopped it before it
was done; 78 invalid environment.
See `lakemill COMMAND --help` for details.";

/// Turns raw CSV files into typed, partitioned Parquet tables.
#[derive(Debug, Parser)]
#[command(name = "lakemill", version, max_term_width = 100, after_help = STATUSES)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

const RUN_HELP: &str = "\
PLACE is a folder, or s3://bucket/prefix, which needs the environment of the object store (OBJ_…).
A second run reads only new and changed files. PLACE/_rejected_rows has the rejected rows and why.
Exit status: 0 success; 1 the run failed; 2 invalid arguments; 75 a signal stopped it; 78 invalid
environment.

Example: lakemill run shop.json --input s3://my-lake/shop --output warehouse";

const UP_HELP: &str = "\
CSVs in DIR/objects/svc-lake/pipelines/<pipeline>/ become tables automatically, within seconds.
Ctrl-C stops it once runs in progress have ended; a second one requeues them.
Exit status: 0 stopped by a signal; 1 it can't start; 2 invalid arguments; 78 invalid environment.

Example: lakemill up --demo";

const WORKER_HELP: &str = "\
See docs/configuration.md for the variables; all missing and malformed ones are reported at once.
SIGTERM stops it once runs in progress have ended; a second one requeues them.
Exit status: 0 stopped by a signal; 1 it can't start; 2 invalid arguments; 78 invalid environment.
With --drain and --once: 0 nothing is left to do and no job failed; 1 a job failed, or a pipeline
can't be compared, or it can't start; 75 a signal stopped it before: start it again.";

const WEB_HELP: &str = "\
See docs/configuration.md for the variables; all missing and malformed ones are reported at once.
SIGTERM stops it once requests in progress have completed; a second one stops it at once.
Exit status: 0 stopped by a signal; 1 it can't start; 2 invalid arguments; 78 invalid environment.";

const HASH_HELP: &str = "\
On a terminal, asks for the password twice without showing it; otherwise reads the first line of
standard input. Use the hash as SVC_ADMIN_PASSWORD_HASH.
Exit status: 0 success; 1 the password can't be used; 2 invalid arguments.";

const INFER_HELP: &str = "\
Files of one shape become one table. The globs of the config are relative to the folder given, or to
the folder of the files given. s3:// needs the environment of the object store (OBJ_…).
Exit status: 0 proposed; 1 nothing can be proposed; 2 invalid arguments; 78 invalid environment.

Example: lakemill infer csvs > p.json && lakemill run p.json --input csvs --output tables";

const ENQUEUE_HELP: &str = "\
Needs the environment of the object store (S3_BUCKET_…, OBJ_…) and KV_URL, or --data.
Exit status: 0 enqueued; 1 it failed; 2 invalid arguments; 78 invalid environment.

Example: lakemill enqueue flights --clean && lakemill jobs flights --follow";

const JOBS_HELP: &str = "\
Needs the environment of the object store (S3_BUCKET_…, OBJ_…) and KV_URL, or --data.
Exit status: 0 success; 1 it failed, or a followed job did; 2 invalid arguments; 78 invalid
environment.

Example: lakemill jobs flights --json | jq .error";

const CANCEL_HELP: &str = "\
A queued job soon fails with the code `cancelled`; a running one stops within seconds, unless it is
publishing. Needs the environment of the object store (S3_BUCKET_…, OBJ_…) and KV_URL, or --data.
Exit status: 0 requested; 1 it can't be cancelled (any more); 2 invalid arguments; 78 invalid
environment.";

const PAUSE_HELP: &str = "\
No run of a paused pipeline starts; jobs and new files wait. Running jobs continue. A new key-value store
has no pauses. Needs the environment of the object store (S3_BUCKET_…, OBJ_…) and
KV_URL, or --data.
Exit status: 0 success; 1 it failed; 2 invalid arguments; 78 invalid environment.

Example: lakemill pause --all --reason 'The warehouse moves to another bucket'";

const RESUME_HELP: &str = "\
Runs of the pipeline start at once; after `--all`, within 30 seconds. Needs the environment of the object
store (S3_BUCKET_…, OBJ_…) and KV_URL, or --data.
Exit status: 0 resumed; 1 it isn't paused, or it failed; 2 invalid arguments; 78 invalid environment.";

const VERIFY_HELP: &str = "\
Reads every file of the tables and compares it with its SHA-256. With --repair, runs of the pipeline
wait meanwhile; unknown files are deleted, and a run is enqueued that rebuilds lost ones.
Needs the environment of the object store (S3_BUCKET_…, OBJ_…) and KV_URL, or --data.
Exit status: 0 all files match the manifests, or were repaired; 1 otherwise; 2 invalid
arguments; 78 invalid environment.

Example: lakemill verify flights --repair && lakemill jobs flights --follow";

const BACKUP_HELP: &str = "\
Copies configs, dashboards, queries, job records, tables and CSVs while the service runs; not the
queue, settings and secrets. DEST is a folder, or s3://bucket/prefix with the object store's OBJ_…;
a later backup to it copies only what is new. Needs the environment of the object store
(S3_BUCKET_…, OBJ_…) and KV_URL, or --data.
Exit status: 0 success; 1 it failed, or the backup lacks something; 2 invalid arguments; 75 a signal
stopped it; 78 invalid environment.

Example: lakemill backup s3://my-backups/lakemill --keep 30";

const RESTORE_HELP: &str = "\
SRC is what `lakemill backup` wrote to. Every object is compared with its hash. With --data, the
folder is made if it is missing. Needs the environment of the object store (S3_BUCKET_…, OBJ_…) and
KV_URL, or --data.
Exit status: 0 success; 1 it failed, or something could not be restored; 2 invalid arguments; 75 a
signal stopped it; 78 invalid environment.

Example: lakemill restore /backup --pipeline shop";

const NOTIFY_HELP: &str = "\
Workers send notifications to the targets in their SVC_NOTIFY_URL. Needs the environment of the
object store (S3_BUCKET_…, OBJ_…) and KV_URL, or --data.
Exit status: 0 success; 1 it failed, or a target didn't accept the test; 2 invalid arguments; 78
invalid environment.

Example: lakemill notify --test";

const HEALTH_HELP: &str = "\
For the health check of a container: HEALTHCHECK CMD [\"lakemill\", \"health\"]
Without --url, checks this machine at PORT and SVC_BIND; without PORT, at 8080, then at 3000. Requests
/livez, which depends on the process alone, or the path of the URL, e.g. /readyz.
Exit status: 0 it responds with 200; 1 it doesn't; 2 invalid arguments; 78 invalid environment.";

const COMPLETIONS_HELP: &str = "\
Exit status: 0 success; 2 invalid arguments.

Example: lakemill completions bash > /usr/share/bash-completion/completions/lakemill";

const MAN_HELP: &str = "\
Exit status: 0 success; 1 the pages can't be written; 2 invalid arguments.

Example: lakemill man --out /usr/local/share/man/man1";

const WEBHOOK_HELP: &str = "\
Needs the environment of the object store (S3_BUCKET_…, OBJ_…).
Exit status: 0 success; 1 it failed; 2 invalid arguments; 78 invalid environment.";

const DOCTOR_HELP: &str = "\
Each check reports ok, skipped, warning or problem, and what to do. Writes small objects to the
buckets and deletes them again. With --data, checks an installation of `lakemill up`: the store and
queue in its folder, and its current or last ports.
Exit status: 0 no problem; 1 at least one; 2 invalid arguments.";

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Convert a folder or bucket of CSV files to Parquet tables, without a service
    #[command(after_help = RUN_HELP)]
    Run(RunArgs),
    /// Start all services in one process, with store and queue in one folder
    #[command(after_help = UP_HELP)]
    Up(UpArgs),
    /// Start a worker, configured by its environment
    #[command(after_help = WORKER_HELP)]
    Worker(WorkerArgs),
    /// Start a web service, configured by its environment
    #[command(after_help = WEB_HELP)]
    Web,
    /// Check a pipeline.json or a dashboard; reports all problems with line and column
    Validate {
        /// The file to check; `-` reads standard input
        file: PathBuf,
    },
    /// Propose a config for CSVs and print it, with the evidence on stderr
    #[command(after_help = INFER_HELP)]
    Infer(InferArgs),
    /// Enqueue a run of a pipeline and print the job's id
    #[command(after_help = ENQUEUE_HELP)]
    Enqueue(EnqueueArgs),
    /// List the jobs of a pipeline, or of all, newest first
    #[command(after_help = JOBS_HELP, override_usage = "lakemill jobs [OPTIONS] <SLUG | --all>")]
    Jobs(JobsArgs),
    /// Cancel a queued or running job
    #[command(after_help = CANCEL_HELP)]
    Cancel(CancelArgs),
    /// Pause the runs of a pipeline or of all, or show what is paused
    #[command(after_help = PAUSE_HELP)]
    Pause(PauseArgs),
    /// End a pause
    #[command(after_help = RESUME_HELP)]
    Resume(ResumeArgs),
    /// Compare the files of a pipeline's tables with their manifests
    #[command(after_help = VERIFY_HELP)]
    Verify(VerifyArgs),
    /// Back up pipelines to a folder or a bucket, or list or check backups
    #[command(after_help = BACKUP_HELP)]
    Backup(BackupArgs),
    /// Restore pipelines from a backup
    #[command(after_help = RESTORE_HELP)]
    Restore(RestoreArgs),
    /// Show the notifications that were sent to people, newest first, or send a test
    #[command(after_help = NOTIFY_HELP)]
    Notify(NotifyArgs),
    /// Manage the object store's notifications of new files
    #[command(subcommand, after_help = WEBHOOK_HELP)]
    Webhook(WebhookCommand),
    /// Check all dependencies of the services, and suggest fixes
    #[command(after_help = DOCTOR_HELP)]
    Doctor(DoctorArgs),
    /// Check that a service responds, for health checks
    #[command(after_help = HEALTH_HELP)]
    Health(HealthArgs),
    /// Print the hash of a password, for SVC_ADMIN_PASSWORD_HASH
    #[command(after_help = HASH_HELP)]
    HashPassword,
    /// Print shell completions
    #[command(after_help = COMPLETIONS_HELP)]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page, or write the pages of all commands
    #[command(after_help = MAN_HELP)]
    Man {
        /// Write a page for each command to this folder, created if missing
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
}

#[derive(Debug, clap::Args)]
pub struct UpArgs {
    /// Folder for objects, queue and secrets; created if missing
    #[arg(long, value_name = "DIR", default_value = "./lakemill-data")]
    pub data: PathBuf,
    /// Create the sample pipeline `flights` with its CSVs, and run it
    #[arg(long)]
    pub demo: bool,
    /// Port of the web service; 0 uses any free port
    #[arg(long, value_name = "PORT", default_value_t = 3000)]
    pub port: u16,
    /// Port of the worker, for health checks and events; 0 uses any free port
    #[arg(long, value_name = "PORT", default_value_t = 8080)]
    pub worker_port: u16,
}

#[derive(Debug, clap::Args)]
pub struct WorkerArgs {
    /// End once no job is queued, waiting or running, and no debounce window is open
    #[arg(long)]
    pub drain: bool,
    /// Compare all pipelines with the lake first, then do as --drain
    #[arg(long, conflicts_with = "drain")]
    pub once: bool,
}

#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// The config, a pipeline.json
    pub file: PathBuf,
    /// What the config's `files` globs are relative to; only read
    #[arg(long, value_name = "PLACE", value_parser = OsStringValueParser::new().try_map(Location::from_argument))]
    pub input: Location,
    /// Place of tables (PLACE/<table>/…), rejected rows (PLACE/_rejected_rows/…) and manifests (PLACE/_lakemill/…)
    #[arg(long, value_name = "PLACE", value_parser = OsStringValueParser::new().try_map(Location::from_argument))]
    pub output: Location,
    /// Convert and check everything, report what would change, write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Rebuild all tables and delete partitions without sources
    #[arg(long)]
    pub clean: bool,
    /// Read only new or changed files whose path starts with this
    #[arg(long, value_name = "PATH", default_value = "", hide_default_value = true)]
    pub prefix: String,
    /// Threads that parse and encode [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Memory of the run in MiB; the rest spills to scratch
    #[arg(long, value_name = "MIB", default_value_t = 512, value_parser = clap::value_parser!(u64).range(64..=1_048_576))]
    pub memory: u64,
    /// Print the result as JSON, as in a job's record
    #[arg(long)]
    pub json: bool,
    /// No progress bar
    #[arg(long, short)]
    pub quiet: bool,
}

#[derive(Debug, clap::Args)]
pub struct InferArgs {
    /// CSV files, folders, or one s3://bucket/prefix
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Name of the table [default: derived from the file names]
    #[arg(long, value_name = "NAME")]
    pub table: Option<String>,
    /// Print the config and its evidence as one JSON document
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, clap::Args)]
pub struct EnqueueArgs {
    /// The pipeline
    #[arg(value_name = "SLUG", value_parser = Slug::parse)]
    pub pipeline: Slug,
    /// Rebuild all tables and delete partitions without sources
    #[arg(long)]
    pub clean: bool,
    /// Read only new or changed files whose key starts with this, below pipelines/SLUG/
    #[arg(long, value_name = "PREFIX", default_value = "", hide_default_value = true)]
    pub prefix: String,
    /// Use the folder of `lakemill up` instead of the environment
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub struct JobsArgs {
    /// The pipeline
    #[arg(value_name = "SLUG", value_parser = Slug::parse, required_unless_present = "all")]
    pub pipeline: Option<Slug>,
    /// Jobs of all pipelines
    #[arg(long, conflicts_with_all = ["pipeline", "follow"])]
    pub all: bool,
    /// Only failed jobs
    #[arg(long, conflicts_with_all = ["active", "follow"])]
    pub failed: bool,
    /// Only queued and running jobs
    #[arg(long)]
    pub active: bool,
    /// Number of jobs
    #[arg(long, value_name = "N", default_value_t = 20,
          value_parser = clap::value_parser!(u16).range(1..=HISTORY_PAGE_JOBS_MAX as i64))]
    pub limit: u16,
    /// Show the progress of active jobs until they end
    #[arg(long)]
    pub follow: bool,
    /// Print one JSON object per line instead of a table
    #[arg(long)]
    pub json: bool,
    /// Use the folder of `lakemill up` instead of the environment
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub struct CancelArgs {
    /// The pipeline
    #[arg(value_name = "SLUG", value_parser = Slug::parse)]
    pub pipeline: Slug,
    /// The job's id, as shown by `lakemill jobs`
    #[arg(value_name = "JOB", value_parser = JobId::parse)]
    pub job_id: JobId,
    /// Use the folder of `lakemill up` instead of the environment
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub struct PauseArgs {
    /// The pipeline
    #[arg(value_name = "SLUG", value_parser = Slug::parse, conflicts_with = "all")]
    pub pipeline: Option<Slug>,
    /// Pause all pipelines, also future ones
    #[arg(long)]
    pub all: bool,
    /// Shown to everybody who sees the pause
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true, value_parser = pause_reason)]
    pub reason: String,
    /// Use the folder of `lakemill up` instead of the environment
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
#[command(group(ArgGroup::new("which").args(["pipeline", "all"]).required(true)))]
pub struct ResumeArgs {
    /// The pipeline
    #[arg(value_name = "SLUG", value_parser = Slug::parse)]
    pub pipeline: Option<Slug>,
    /// End the pause of all pipelines; those that were paused by name stay paused
    #[arg(long)]
    pub all: bool,
    /// Use the folder of `lakemill up` instead of the environment
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
}

fn pause_reason(text: &str) -> Result<String, String> {
    match text.len() {
        0..=PAUSE_REASON_BYTES_MAX => Ok(text.trim().to_owned()),
        found => Err(format!("expected at most {PAUSE_REASON_BYTES_MAX} bytes, found {found}")),
    }
}

#[derive(Debug, clap::Args)]
pub struct VerifyArgs {
    /// The pipeline
    #[arg(value_name = "SLUG", value_parser = Slug::parse)]
    pub pipeline: Slug,
    /// Delete unknown files, and enqueue a run that rebuilds missing and changed ones
    #[arg(long)]
    pub repair: bool,
    /// Print one JSON object per line: each fault, then a summary for each table
    #[arg(long)]
    pub json: bool,
    /// Use the folder of `lakemill up` instead of the environment
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub struct BackupArgs {
    /// A folder, or s3://bucket/prefix, for backups alone
    #[arg(value_name = "DEST", value_parser = OsStringValueParser::new().try_map(Location::from_argument))]
    pub dest: Location,
    /// Only this pipeline; may be repeated. Others stay as in the newest backup
    #[arg(long = "pipeline", value_name = "SLUG", value_parser = Slug::parse)]
    pub pipelines: Vec<Slug>,
    /// Leave out the CSVs of the lake
    #[arg(long)]
    pub without_csvs: bool,
    /// Leave out the tables; a clean run rebuilds them
    #[arg(long)]
    pub without_tables: bool,
    /// Copy every object again, even if DEST has it
    #[arg(long)]
    pub full: bool,
    /// Number of backups in DEST; older ones are deleted
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub keep: u16,
    /// List the backups in DEST, oldest first
    #[arg(long, conflicts_with_all = ["verify", "pipelines", "without_csvs", "without_tables", "full", "keep"])]
    pub list: bool,
    /// Read a backup in DEST, and compare every object with its hash
    #[arg(long, conflicts_with_all = ["pipelines", "without_csvs", "without_tables", "full", "keep"])]
    pub verify: bool,
    /// The backup to verify [default: the newest]
    #[arg(long, value_name = "ID", requires = "verify")]
    pub backup: Option<String>,
    /// Print JSON, one object per line
    #[arg(long)]
    pub json: bool,
    /// No progress bar
    #[arg(long, short)]
    pub quiet: bool,
    /// Use the folder of `lakemill up` instead of the environment
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub struct RestoreArgs {
    /// A folder, or s3://bucket/prefix, with backups
    #[arg(value_name = "SRC", value_parser = OsStringValueParser::new().try_map(Location::from_argument))]
    pub source: Location,
    /// Only this pipeline; may be repeated
    #[arg(long = "pipeline", value_name = "SLUG", value_parser = Slug::parse)]
    pub pipelines: Vec<Slug>,
    /// The backup, as shown by `lakemill backup SRC --list` [default: the newest]
    #[arg(long, value_name = "ID")]
    pub backup: Option<String>,
    /// Restore only objects that the store lacks; the others stay as they are
    #[arg(long)]
    pub missing_only: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
    /// No progress bar
    #[arg(long, short)]
    pub quiet: bool,
    /// Use the folder of `lakemill up` instead of the environment
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub struct NotifyArgs {
    /// Send a test to all targets, and wait until each was tried
    #[arg(long)]
    pub test: bool,
    /// Number of notifications
    #[arg(long, value_name = "N", default_value_t = 20, conflicts_with = "test",
          value_parser = clap::value_parser!(u16).range(1..=NOTIFICATIONS_MAX as i64))]
    pub limit: u16,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
    /// Use the folder of `lakemill up` instead of the environment
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub struct HealthArgs {
    /// URL of the service, e.g. http://127.0.0.1:3000
    #[arg(long)]
    pub url: Option<String>,
    /// Seconds to wait for the response
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=300))]
    pub timeout: u64,
}

#[derive(Debug, clap::Args)]
pub struct DoctorArgs {
    /// Print one JSON document instead of lines
    #[arg(long)]
    pub json: bool,
    /// Use the folder of `lakemill up` instead of the environment
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
}

/// Longest ARN, in bytes.
const ARN_BYTES_MAX: usize = 2_048;

const INSTALL_HELP: &str = "\
--arn is the webhook target configured in the store, e.g. arn:minio:sqs::lakemill:webhook. It must
post to the worker's /events/s3 with SVC_WEBHOOK_SECRET as its token. --sqs, --sns and --eventbridge
are for AWS; the output says what else they need. Other rules of the bucket are kept; rules of
earlier installs are replaced, so that the command can be repeated.";

/// Where the store sends notifications of new files.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub struct WebhookTarget {
    /// The store's webhook target
    #[arg(long, value_parser = arn)]
    pub arn: Option<String>,
    /// A queue of SQS, from which the workers take the events
    #[arg(long, value_name = "ARN", value_parser = |text: &str| arn_of_aws(text, "sqs"))]
    pub sqs: Option<Arn>,
    /// A topic of SNS, to which a worker or a queue subscribes
    #[arg(long, value_name = "ARN", value_parser = |text: &str| arn_of_aws(text, "sns"))]
    pub sns: Option<Arn>,
    /// EventBridge, for all events of the bucket
    #[arg(long)]
    pub eventbridge: bool,
}

#[derive(Debug, Subcommand)]
pub enum WebhookCommand {
    /// Add a rule to the lake bucket: objects created under pipelines/ that end in .csv
    #[command(after_help = INSTALL_HELP)]
    Install {
        #[command(flatten)]
        target: Box<WebhookTarget>,
        /// Also .csv.gz and .csv.zst
        #[arg(long)]
        compressed: bool,
    },
    /// Show the rules of the lake bucket
    Show,
    /// Remove all rules of the lake bucket; asks first if there are other rules
    Remove {
        /// Don't ask
        #[arg(long)]
        yes: bool,
    },
}

fn arn_of_aws(text: &str, service: &str) -> Result<Arn, String> {
    let found = Arn::parse(text).ok().filter(|arn| arn.is_of_aws() && arn.service == service);
    let found = found.filter(|_| text.len() <= ARN_BYTES_MAX);
    found.ok_or_else(|| format!("expected an ARN such as `arn:aws:{service}:eu-central-1:123456789012:name`"))
}

fn arn(text: &str) -> Result<String, String> {
    let printable = text.chars().all(|c| c.is_ascii_graphic());
    match text.starts_with("arn:") && printable && text.len() <= ARN_BYTES_MAX {
        true => Ok(text.to_owned()),
        false => Err(format!("expected `arn:…` of at most {ARN_BYTES_MAX} bytes, without spaces")),
    }
}
