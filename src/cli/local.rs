//! `lakemill run`: converts a folder or bucket of CSVs to a folder or bucket of Parquet, without a service.

use std::cell::Cell;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::args::RunArgs;
use super::command_error::CommandError;
use super::expressions::{available_threads, processes};
use super::location::{Location, S3Location};
use super::pipeline_lock::with_object_lock;
use super::progress::Terminal;
use super::run_store::RunLocations;
use super::serve::process_name;
use super::warnings::{Warnings, warn};
use super::{environment, output, run_failure, summary};
use crate::adapters::fs::OutputLock;
use crate::config::RunConfig;
use crate::domain::job::{ChangedKeys, Progress, RunErrorCode};
use crate::domain::limits::CONFIG_BYTES_MAX;
use crate::domain::name::Slug;
use crate::domain::pipeline::Pipeline;
use crate::engine::convert::Resources;
use crate::engine::run::{CsvConverter, LocalLease, RunRequest, run as run_pipeline};
use crate::pipelines::object_lock::OtherRun;
use crate::ports::observer::Stop;
use crate::ports::store::Lease;
use crate::ports::{Expressions, ObjectStore, RunObserver};
use crate::runtime::SystemClock;
use crate::system::ProcessFolder;

/// Scratch of a run, in the output folder so that finished files need only be renamed.
const SCRATCH_FOLDER: &str = ".lakemill-scratch";
/// Folder for the scratch of a run to a bucket without `SVC_SCRATCH_DIR`, and the prefix of its name.
const BUCKET_SCRATCH: (&str, &str) = ("/var/tmp", "lakemill-run-");

/// Runs the pipeline. False if the run failed, which is then printed.
///
/// # Errors
/// The arguments or the environment are invalid, or the output can't be used.
pub fn run(args: &RunArgs) -> Result<bool, CommandError> {
    let threads = args.threads.map_or_else(available_threads, usize::from);
    let expressions: &dyn Expressions = &processes(threads)?.run_view();
    let Some(pipeline) = read_config(&args.file, expressions)? else { return Ok(false) };
    let is_local = |location: &Location| matches!(location, Location::Folder(_));
    let config = match is_local(&args.input) && is_local(&args.output) {
        true => None,
        false => Some(environment::load(None, RunConfig::from_env)?),
    };
    let slug = Slug::parse("local").map_err(|e| e.to_string())?;
    let input = match &args.input {
        Location::Folder(path) => Location::Folder(input_folder(path)?),
        Location::S3(location) => Location::S3(location.clone()),
    };
    let run = LocalRun { args, pipeline: &pipeline, threads, expressions, slug: &slug };
    match &args.output {
        Location::Folder(output) => run.to_folder(input, output, config.as_ref()),
        Location::S3(output) => run.to_bucket(input, output, config.as_ref()),
    }
}

/// The parts of a run that don't depend on where its output is.
struct LocalRun<'a> {
    args: &'a RunArgs,
    pipeline: &'a Pipeline,
    threads: usize,
    expressions: &'a dyn Expressions,
    slug: &'a Slug,
}

impl LocalRun<'_> {
    /// Locks the folder for the process's life.
    fn to_folder(&self, input: Location, output: &Path, config: Option<&RunConfig>) -> Result<bool, CommandError> {
        let input_folder = match &input {
            Location::Folder(folder) => Some(folder.as_path()),
            Location::S3(_) => None,
        };
        output::check(output, input_folder)?;
        let _cleanup = self.args.dry_run.then(|| output::DryRunCleanup::new(output));
        let _lock = OutputLock::acquire(output).map_err(|e| format!("--output: {e}"))?;
        let output = output.canonicalize().map_err(|e| format!("--output `{}`: {e}", output.display()))?;
        let terminal = self.terminal()?;
        let places = RunLocations { slug: self.slug, input, output: Location::Folder(output.clone()) };
        let store = places.open(config.map(|config| &config.objects))?;
        let scratch = Scratch::make(&output)?;
        let lease = LocalLease::next(&*store.output, self.slug, &SystemClock).map_err(|e| e.to_string())?;
        self.convert(&*store.all, &lease, &scratch.0, &terminal)
    }

    /// Locks the prefix by an object, whose lease the run renews. A dry run writes nothing, the lock included.
    fn to_bucket(
        &self,
        input: Location,
        output: &S3Location,
        config: Option<&RunConfig>,
    ) -> Result<bool, CommandError> {
        let terminal = self.terminal()?;
        let places = RunLocations { slug: self.slug, input, output: Location::S3(output.clone()) };
        let store = places.open(config.map(|config| &config.objects))?;
        let scratch = bucket_scratch(config.and_then(|config| config.scratch_dir.as_deref()))?;
        if self.args.dry_run {
            let lease = LocalLease::next(&*store.output, self.slug, &SystemClock).map_err(|e| e.to_string())?;
            return self.convert(&*store.all, &lease, scratch.path(), &terminal);
        }
        let is_reported = Cell::new(false);
        let waiting = |other: &OtherRun| {
            if !is_reported.replace(true) {
                let (holder, since, seconds) = (&other.holder, &other.since, other.expires_in.as_secs() + 1);
                warn(&format!(
                    "`{output}` is locked by a run of `{holder}` since {since}; waiting up to {seconds} s to see whether it is alive"
                ));
            }
            terminal.check().map_err(|_| "interrupted while waiting for another run".to_owned())
        };
        with_object_lock(&*store.output, self.slug, &waiting, |lease| {
            Ok(self.convert(&*store.all, lease, scratch.path(), &terminal))
        })
        .map_err(|error| match terminal.check() {
            Ok(()) => CommandError::Other(format!("--output `{output}`: {error}")),
            Err(_) => CommandError::Interrupted(format!("--output `{output}`: {error}")),
        })?
    }

    fn terminal(&self) -> Result<Terminal, String> {
        let terminal = Terminal::new(self.args.quiet).map_err(|e| format!("installing signal handlers: {e}"))?;
        Warnings::listen(terminal.bar());
        Ok(terminal)
    }

    fn convert(
        &self,
        store: &dyn ObjectStore,
        lease: &dyn Lease,
        scratch: &Path,
        terminal: &Terminal,
    ) -> Result<bool, CommandError> {
        let args = self.args;
        let resources =
            Resources { threads: self.threads, memory_bytes: args.memory << 20, scratch: scratch.to_owned() };
        let job_id = uuid::Uuid::now_v7().to_string();
        let request = RunRequest {
            pipeline: self.pipeline,
            job_id: &job_id,
            prefix: &args.prefix,
            changed: &ChangedKeys::All,
            clean: args.clean,
            dry_run: args.dry_run,
            settle: false,
            versions: &crate::engine::versions(),
            store,
            expressions: self.expressions,
            catalog: None,
            clock: &SystemClock,
            lease,
            observer: &LeasedRun { terminal, lease },
            resources: &resources,
        };
        let started = Instant::now();
        let outcome = run_pipeline(&request, &CsvConverter);
        terminal.finish();
        match outcome {
            Ok(result) => {
                let text = if args.json {
                    serde_json::to_string(&result).map_err(|e| e.to_string())? + "\n"
                } else {
                    summary::of(&result, args.dry_run, &args.prefix, started.elapsed())
                };
                std::io::stdout().lock().write_all(text.as_bytes()).map_err(|e| e.to_string())?;
                Ok(true)
            }
            Err(failure) => {
                // Nothing can be done if stderr is closed.
                let _ = run_failure::write(&failure, &args.input, &args.output, &mut std::io::stderr().lock());
                match failure.error.code {
                    RunErrorCode::Cancelled => {
                        Err(CommandError::Interrupted("stopped by a signal; run it again".into()))
                    }
                    _ => Ok(false),
                }
            }
        }
    }
}

/// Shows a run on the terminal, and stops it once its lock is lost.
struct LeasedRun<'a> {
    terminal: &'a Terminal,
    lease: &'a dyn Lease,
}

impl RunObserver for LeasedRun<'_> {
    fn progress(&self, progress: &Progress) {
        self.terminal.progress(progress);
    }

    fn check(&self) -> Result<(), Stop> {
        self.lease.remaining().map_err(|_| Stop::LeaseLost)?;
        self.terminal.check()
    }
}

/// Reads and checks the config; its problems are printed as `lakemill validate` does.
fn read_config(file: &Path, expressions: &dyn Expressions) -> Result<Option<Pipeline>, String> {
    let failed = |e: std::io::Error| format!("config `{}`: {e}", file.display());
    let length = std::fs::metadata(file).map_err(failed)?.len();
    if length > CONFIG_BYTES_MAX as u64 {
        return Err(format!("config `{}` has {length} bytes, expected at most {CONFIG_BYTES_MAX}", file.display()));
    }
    let bytes = std::fs::read(file).map_err(failed)?;
    if let Ok(text) = std::str::from_utf8(&bytes)
        && let Ok(pipeline) = crate::engine::validate::validate(text, expressions)
    {
        return Ok(Some(pipeline));
    }
    let name = file.display().to_string();
    super::validate::report(&name, &bytes, expressions, &mut std::io::stderr().lock()).map_err(|e| e.to_string())?;
    Ok(None)
}

fn input_folder(path: &Path) -> Result<PathBuf, String> {
    let found = path.canonicalize().map_err(|e| format!("--input `{}`: {e}", path.display()))?;
    if found.is_dir() { Ok(found) } else { Err(format!("--input `{}` is not a folder", path.display())) }
}

/// The run's scratch folder, removed when dropped. The output is locked, so existing files in it are leftovers of a
/// dead run.
struct Scratch(PathBuf);

impl Scratch {
    fn make(output: &Path) -> Result<Self, String> {
        let path = output.join(SCRATCH_FOLDER);
        let failed = |e: std::io::Error| format!("scratch folder `{}`: {e}", path.display());
        match std::fs::remove_dir_all(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
            _ => std::fs::create_dir(&path).map_err(failed)?,
        }
        Ok(Self(path))
    }
}

/// The scratch folder of a run to a bucket, removed when dropped.
fn bucket_scratch(dir: Option<&Path>) -> Result<ProcessFolder, String> {
    let made = match dir {
        Some(dir) => ProcessFolder::make(dir, &process_name()),
        None => ProcessFolder::make_shared(Path::new(BUCKET_SCRATCH.0), BUCKET_SCRATCH.1),
    };
    made.map_err(|error| {
        let dir = dir.unwrap_or(Path::new(BUCKET_SCRATCH.0)).display();
        format!("scratch folder in `{dir}`: {error}; set another in SVC_SCRATCH_DIR")
    })
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
