//! `lakemill backup`: makes, lists and checks backups.

use std::io::Write;
use std::sync::atomic::Ordering;

use indicatif::{HumanBytes, HumanCount};
use serde_json::{Value, json};

use super::args::BackupArgs;
use super::backup_place::OpenPlace;
use super::command_error::CommandError;
use super::environment;
use super::location::Location;
use super::pipeline_lock::with_object_lock;
use super::plain::plain;
use super::progress::Terminal;
use super::services::Services;
use super::transfer_progress::{TransferProgress, failure};
use super::warnings::{Warnings, warn};
use crate::adapters::fs::OutputLock;
use crate::config::OperatorConfig;
use crate::domain::backup::BackupRoot;
use crate::pipelines;
use crate::pipelines::backup::{
    BackupError, BackupOutcome, BackupPlace, BackupRequest, TransferCounts, TransferWatch, check, make,
};
use crate::ports::store::Lease;

/// Shown after each backup: the parts of an installation that no backup has.
const NOT_INCLUDED: &str = "not included: queue and sessions, settings, secrets";

/// False if the backup lacks something, or a check found damage.
///
/// # Errors
/// The environment is invalid, or a store or the place failed.
pub fn run(args: &BackupArgs) -> Result<bool, CommandError> {
    if args.list || args.verify {
        let place = OpenPlace::to_read(&args.dest)?;
        let place = BackupPlace { store: &*place.store, slug: &place.slug, lease: None };
        return if args.list { list(args, &place) } else { verify(args, &place) };
    }
    let config = environment::load(args.data.as_deref(), OperatorConfig::from_env)?;
    let services = Services::open(&config.objects, &config.kv)?;
    refuse_unknown(args, &services)?;
    let place = OpenPlace::to_write(&args.dest, &config.objects)?;
    let terminal = terminal(args.quiet || args.json)?;
    let progress = TransferProgress::new(&terminal, "copied");
    let counts = TransferCounts::default();
    let watch = TransferWatch { counts: &counts, is_stopped: &|| progress.is_stopped(&counts) };
    let backup = |lease: Option<&dyn Lease>| {
        make(&BackupRequest {
            source: &*services.store,
            place: BackupPlace { store: &*place.store, slug: &place.slug, lease },
            pipelines: &args.pipelines.iter().cloned().collect(),
            without_csvs: args.without_csvs,
            without_tables: args.without_tables,
            is_full: args.full,
            keep: usize::from(args.keep),
            clock: &*services.clock,
            watch,
        })
    };
    let made = match &args.dest {
        Location::Folder(folder) => {
            let _lock = OutputLock::acquire(folder).map_err(|error| error.to_string())?;
            backup(None)
        }
        Location::S3(location) => {
            let waiting = |_: &pipelines::object_lock::OtherRun| match progress.is_stopped(&counts) {
                true => Err("interrupted while waiting for another backup".to_owned()),
                false => Ok(()),
            };
            with_object_lock(&*place.store, &place.slug, &waiting, |lease| Ok(backup(Some(lease)))).map_err(
                |error| match progress.is_stopped(&counts) {
                    true => CommandError::Interrupted(format!("`{location}`: {error}")),
                    false => CommandError::Other(format!("`{location}`: {error}")),
                },
            )?
        }
    };
    terminal.finish();
    report(args, &made.map_err(|error| failure(&error, "the backups that were there are as before"))?, &counts)
}

fn refuse_unknown(args: &BackupArgs, services: &Services) -> Result<(), CommandError> {
    for slug in &args.pipelines {
        if let Some(unknown) = super::unknown::message(services, slug).map_err(|error| error.to_string())? {
            return Err(unknown.into());
        }
    }
    Ok(())
}

/// # Errors
/// Signal handlers can't be installed.
pub(super) fn terminal(is_quiet: bool) -> Result<Terminal, String> {
    let terminal = Terminal::new(is_quiet).map_err(|error| format!("installing signal handlers: {error}"))?;
    Warnings::listen(terminal.bar());
    Ok(terminal)
}

fn report(args: &BackupArgs, made: &BackupOutcome, counts: &TransferCounts) -> Result<bool, CommandError> {
    for problem in &made.problems {
        warn(problem);
    }
    if let Some(why) = &made.not_deleted {
        warn(&format!("nothing was deleted, since an earlier backup can't be read: {why}"));
    }
    let (objects, bytes) = (counts.objects.load(Ordering::Relaxed), counts.bytes.load(Ordering::Relaxed));
    let root = &made.root;
    let text = format!(
        "backup {}: {} objects, {}; copied {} objects, {}\n{NOT_INCLUDED}{}",
        root.id,
        HumanCount(root.objects),
        HumanBytes(root.bytes),
        HumanCount(objects),
        HumanBytes(bytes),
        left_out(root)
    );
    let line = json!({
        "backup": root.id,
        "objects": root.objects,
        "bytes": root.bytes,
        "copied_objects": objects,
        "copied_bytes": bytes,
        "deleted_backups": made.deleted_backups,
        "deleted_objects": made.deleted_objects,
        "problems": made.problems,
    });
    print(args.json, &text, &line)?;
    Ok(made.problems.is_empty())
}

fn left_out(root: &BackupRoot) -> String {
    let csvs = if root.without_csvs { ", CSVs" } else { "" };
    let tables = if root.without_tables { ", tables" } else { "" };
    format!("{csvs}{tables}")
}

fn list(args: &BackupArgs, place: &BackupPlace<'_>) -> Result<bool, CommandError> {
    for id in place.backups().map_err(|error| error.to_string())? {
        let root = match place.backup(Some(&id)) {
            Ok(root) => root,
            Err(error) => {
                warn(&error.to_string());
                continue;
            }
        };
        let without = left_out(&root);
        let without =
            if without.is_empty() { without } else { format!(", without{}", without.trim_start_matches(',')) };
        let (objects, bytes) = (HumanCount(root.objects), HumanBytes(root.bytes));
        let text = format!("{id}  {}  {objects} objects, {bytes}{without}", root.began_at);
        let line = json!({
            "backup": id,
            "began_at": root.began_at,
            "objects": root.objects,
            "bytes": root.bytes,
            "without_csvs": root.without_csvs,
            "without_tables": root.without_tables,
        });
        print(args.json, &text, &line)?;
    }
    Ok(true)
}

fn verify(args: &BackupArgs, place: &BackupPlace<'_>) -> Result<bool, CommandError> {
    let root = place.backup(args.backup.as_deref()).map_err(|error| error.to_string())?;
    let terminal = terminal(args.quiet || args.json)?;
    let progress = TransferProgress::new(&terminal, "checked");
    let counts = TransferCounts::default();
    let watch = TransferWatch { counts: &counts, is_stopped: &|| progress.is_stopped(&counts) };
    let mut damaged = 0_u64;
    let checked = check(place, &root, watch, &mut |fault| {
        damaged += 1;
        let line = json!({ "damaged": fault });
        print(args.json, &format!("damaged  {fault}"), &line).map_err(BackupError::Refused)
    });
    terminal.finish();
    checked.map_err(|error| failure(&error, "the check is incomplete"))?;
    let seen = counts.seen.load(Ordering::Relaxed);
    let text = match damaged {
        0 => format!("backup {}: all {} objects are whole", root.id, HumanCount(seen)),
        _ => format!(
            "backup {}: {damaged} of {} objects are damaged; `lakemill backup DEST --full` copies all objects again",
            root.id,
            HumanCount(seen)
        ),
    };
    print(args.json, &text, &json!({ "backup": root.id, "objects": seen, "damaged_objects": damaged }))?;
    Ok(damaged == 0)
}

/// Prints a line of text, or of JSON.
///
/// # Errors
/// Standard output can't be written.
pub(super) fn print(is_json: bool, text: &str, line: &Value) -> Result<(), String> {
    let text = if is_json { line.to_string() } else { text.lines().map(plain).collect::<Vec<_>>().join("\n") };
    writeln!(std::io::stdout(), "{text}").map_err(|error| error.to_string())
}
