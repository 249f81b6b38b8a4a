//! `lakemill run`: converts a local folder of CSVs to a local folder of Parquet, without a service.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::args::RunArgs;
use super::expressions::{available_threads, processes};
use super::output::{self, STATE_FOLDER};
use super::progress::Terminal;
use super::warnings::Warnings;
use super::{run_failure, summary};
use crate::adapters::fs::{DOT_FILES, FsStore, Mount, OutputLock};
use crate::domain::job::ChangedKeys;
use crate::domain::layout::pipeline_prefix;
use crate::domain::limits::CONFIG_BYTES_MAX;
use crate::domain::name::Slug;
use crate::domain::pipeline::Pipeline;
use crate::engine::convert::Resources;
use crate::engine::run::{CsvConverter, LocalLease, RunRequest, run as run_pipeline};
use crate::ports::Expressions;
use crate::ports::store::Bucket;
use crate::runtime::SystemClock;

/// Scratch of a run, in the output folder so that finished files need only be renamed.
const SCRATCH_FOLDER: &str = ".lakemill-scratch";

/// Runs the pipeline. False if the run failed, which is then printed.
///
/// # Errors
/// The arguments are invalid.
pub fn run(args: &RunArgs) -> Result<bool, String> {
    let threads = args.threads.map_or_else(available_threads, usize::from);
    let expressions: &dyn Expressions = &processes(threads)?.of_run();
    let Some(pipeline) = read_config(&args.file, expressions)? else { return Ok(false) };
    let input = input_folder(&args.input)?;
    output::check(&args.output, &input)?;
    let _cleanup = args.dry_run.then(|| output::DryRunCleanup::new(&args.output));
    let _lock = OutputLock::acquire(&args.output).map_err(|e| format!("--output: {e}"))?;
    let output = args.output.canonicalize().map_err(|e| format!("--output `{}`: {e}", args.output.display()))?;
    let terminal = Terminal::new(args.quiet).map_err(|e| format!("installing signal handlers: {e}"))?;
    Warnings::listen(terminal.bar());
    let slug = Slug::parse("local").map_err(|e| e.to_string())?;
    let store = FsStore::mounted(mounts(&slug, &input, &output)).map_err(|e| e.to_string())?;
    let scratch = Scratch::make(&output)?;
    let resources = Resources { threads, memory_bytes: args.memory << 20, scratch: scratch.0.clone() };
    let lease = LocalLease::next(&store, &slug, &SystemClock).map_err(|e| e.to_string())?;
    let job_id = uuid::Uuid::now_v7().to_string();
    let request = RunRequest {
        pipeline: &pipeline,
        job_id: &job_id,
        prefix: &args.prefix,
        changed: &ChangedKeys::All,
        clean: args.clean,
        dry_run: args.dry_run,
        settle: false,
        versions: &crate::engine::versions(),
        store: &store,
        expressions,
        catalog: None,
        clock: &SystemClock,
        lease: &lease,
        observer: &terminal,
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
            Ok(false)
        }
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

fn mounts(slug: &Slug, input: &Path, output: &Path) -> Vec<Mount> {
    let prefix = pipeline_prefix(slug);
    let mount = |bucket, dir: PathBuf, writable, hide: &[&str]| Mount {
        bucket,
        prefix: prefix.clone(),
        dir,
        writable,
        hide: hide.iter().map(|&h| h.to_owned()).collect(),
    };
    // An output folder within the input is not a source.
    let within = output.strip_prefix(input).ok().and_then(Path::to_str);
    let hidden: Vec<&str> = std::iter::once(DOT_FILES).chain(within).collect();
    vec![
        mount(Bucket::Lake, input.to_owned(), false, &hidden),
        mount(Bucket::Warehouse, output.to_owned(), true, &[STATE_FOLDER, DOT_FILES]),
        mount(Bucket::Pipelines, output.join(STATE_FOLDER), true, &[DOT_FILES]),
    ]
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

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
