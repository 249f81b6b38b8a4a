//! `lakemill restore`: restores pipelines from a backup.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::Ordering;

use indicatif::{HumanBytes, HumanCount};
use serde_json::json;

use super::args::RestoreArgs;
use super::backup::{print, terminal};
use super::backup_place::OpenPlace;
use super::command_error::CommandError;
use super::embedded::Embedded;
use super::environment;
use super::pipeline_lock::with_pipeline_lock;
use super::serve::process_name;
use super::services::Services;
use super::transfer_progress::{TransferProgress, failure};
use super::warnings::warn;
use crate::adapters::sqlite::{SqliteKv, SqliteOptions};
use crate::config::{OperatorConfig, RunConfig};
use crate::domain::backup::BackupRoot;
use crate::domain::name::Slug;
use crate::domain::pause::Pause;
use crate::pipelines;
use crate::pipelines::backup::{
    BackupError, BackupPlace, RestoreRequest, RestoredPipeline, TransferCounts, TransferWatch, pipelines_in,
    restore_config, restore_pipeline, restore_workspace,
};
use crate::ports::ObjectStore;
use crate::ports::store::{Bucket, Lease, StoreResult};
use crate::system::ProcessFolder;

/// Folder for temporary files without `SVC_SCRATCH_DIR`, and the prefix of its name.
const SCRATCH: (&str, &str) = ("/var/tmp", "lakemill-restore-");
/// Pipelines named in an error.
const NAMED_MAX: usize = 10;
const PAUSE_REASON: &str = "Restored without all of its CSVs: put them into the lake, then end this pause. A run would \
                            remove their rows from the tables";

/// False if something could not be restored.
///
/// # Errors
/// The environment is invalid, the store has objects of these pipelines, or a store or the place failed.
pub fn run(args: &RestoreArgs) -> Result<bool, CommandError> {
    let open = OpenPlace::to_read(&args.source)?;
    let place = BackupPlace { store: &*open.store, slug: &open.slug, lease: None };
    let other = |error: BackupError| CommandError::Other(error.to_string());
    let root = place.backup(args.backup.as_deref()).map_err(other)?;
    let slugs = wanted(args, &place, &root)?;
    if let Some(data) = &args.data {
        make_folder(data)?;
    }
    let config = environment::load(args.data.as_deref(), OperatorConfig::from_env)?;
    let services = Services::open(&config.objects, &config.kv)?;
    if !args.missing_only {
        refuse_existing(&*services.store, &slugs, &root)?;
    }
    let scratch = scratch(args.data.as_deref())?;
    let terminal = terminal(args.quiet || args.json)?;
    let progress = TransferProgress::new(&terminal, "restored");
    let counts = TransferCounts::default();
    let request = RestoreRequest {
        place,
        root: &root,
        store: &*services.store,
        scratch: scratch.path(),
        missing_only: args.missing_only,
        watch: TransferWatch { counts: &counts, is_stopped: &|| progress.is_stopped(&counts) },
    };
    let restored = restore_all(args, &request, &services, &slugs);
    terminal.finish();
    let problems = restored?;
    let (objects, bytes) = (counts.objects.load(Ordering::Relaxed), counts.bytes.load(Ordering::Relaxed));
    let text = format!(
        "backup {}: restored {} pipelines, {} objects, {}\nA worker compares their tables with the lake.",
        root.id,
        slugs.len(),
        HumanCount(objects),
        HumanBytes(bytes)
    );
    let line = json!({
        "backup": root.id,
        "pipelines": slugs.len(),
        "objects": objects,
        "bytes": bytes,
        "problems": problems,
    });
    print(args.json, &text, &line)?;
    Ok(problems == 0)
}

/// The pipelines to restore.
fn wanted(args: &RestoreArgs, place: &BackupPlace<'_>, root: &BackupRoot) -> Result<BTreeSet<Slug>, CommandError> {
    let all = pipelines_in(place, root).map_err(|error| error.to_string())?;
    if args.pipelines.is_empty() {
        return Ok(all);
    }
    match args.pipelines.iter().find(|slug| !all.contains(slug)) {
        Some(unknown) => Err(CommandError::Other(format!("backup `{}` has no pipeline `{unknown}`", root.id))),
        None => Ok(args.pipelines.iter().cloned().collect()),
    }
}

/// Makes the folder of `lakemill up` if it does not exist.
fn make_folder(data: &Path) -> Result<(), String> {
    if !data.join("kv.db").exists() {
        let embedded = Embedded::make(data)?;
        SqliteKv::open(SqliteOptions::new(embedded.root().join("kv.db")))
            .map_err(|error| format!("--data: {error}"))?;
    }
    Ok(())
}

/// Rejects pipelines that have objects in the store. CSVs are allowed if the backup has none.
fn refuse_existing(store: &dyn ObjectStore, slugs: &BTreeSet<Slug>, root: &BackupRoot) -> Result<(), CommandError> {
    let buckets: &[Bucket] = if root.without_csvs { &[Bucket::Pipelines, Bucket::Warehouse] } else { &Bucket::ALL };
    let existing: StoreResult<Vec<Slug>> = pipelines::all(store).and_then(|all| {
        let found = all.into_iter().filter(|slug| slugs.contains(slug));
        let found = found.map(|slug| StoreResult::Ok(pipelines::is_in_use(store, &slug, buckets)?.then_some(slug)));
        found.filter_map(Result::transpose).take(NAMED_MAX).collect()
    });
    let existing = existing.map_err(|error| error.to_string())?;
    if existing.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = existing.iter().map(|slug| format!("`{slug}`")).collect();
    Err(CommandError::Other(format!(
        "the store has objects of {}: delete these pipelines first, restore others with --pipeline, or restore only what \
         is missing with --missing-only",
        names.join(", ")
    )))
}

fn scratch(data: Option<&Path>) -> Result<ProcessFolder, CommandError> {
    let dir = environment::load(data, RunConfig::from_env)?.scratch_dir;
    let made = match dir.as_deref() {
        Some(dir) => ProcessFolder::make(dir, &process_name()),
        None => ProcessFolder::make_shared(Path::new(SCRATCH.0), SCRATCH.1),
    };
    made.map_err(|error| {
        let dir = dir.as_deref().unwrap_or(Path::new(SCRATCH.0)).display();
        CommandError::Other(format!("scratch folder in `{dir}`: {error}; set another in SVC_SCRATCH_DIR"))
    })
}

/// Returns the number of problems, which are printed.
fn restore_all(
    args: &RestoreArgs,
    request: &RestoreRequest<'_>,
    services: &Services,
    slugs: &BTreeSet<Slug>,
) -> Result<u64, CommandError> {
    let state = "pipelines restored so far are complete; the others follow with --missing-only";
    let mut problems = 0;
    for slug in slugs {
        let restored = with_pipeline_lock(services, slug, |lease| Ok(restore_one(request, services, slug, lease)));
        for problem in restored?.map_err(|error| failure(&error, state))?.problems {
            problems += 1;
            warn(&format!("`{slug}`: {problem}"));
        }
    }
    if args.pipelines.is_empty() {
        restore_workspace(request).map_err(|error| failure(&error, state))?;
    }
    Ok(problems)
}

/// Restores a pipeline; pauses it if a run would remove rows of CSVs that were not restored.
fn restore_one(
    request: &RestoreRequest<'_>,
    services: &Services,
    slug: &Slug,
    lease: &dyn Lease,
) -> Result<RestoredPipeline, BackupError> {
    let mut restored = restore_pipeline(request, slug, lease)?;
    if restored.lacks_csvs {
        let pause = Pause { since: services.clock.now(), reason: PAUSE_REASON.to_owned() };
        services.kv.pause(Some(slug), &pause).map_err(|error| BackupError::Refused(error.to_string()))?;
        restored.problems.push("paused, since its lake lacks CSVs: add them, then `lakemill resume`".to_owned());
    }
    restored.problems.extend(restore_config(request, slug, lease)?);
    // The lake may have other CSVs than the tables were made of.
    services.kv.request_runs(std::slice::from_ref(slug)).map_err(|error| BackupError::Refused(error.to_string()))?;
    Ok(restored)
}
