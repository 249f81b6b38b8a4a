//! A run of a pipeline: plan, convert, publish, finish.
//!
//! Invariant: nothing is written to the store before every table is converted and found good, but for the rejects of a
//! run that fails for them. From then on each table is published by itself ([`publish`]): a run that dies there leaves a
//! mark, and the next run repairs what the mark names.
//! Must not: decide what to rebuild; that is `domain::plan`.
//!
//! What is done where there was a choice:
//! - When a source changes while it is read, the tables converted before stay as they are; the run goes on with a new
//!   listing from the table at which it happened.
//! - All tables are planned before the first is converted, and, where the request says so, their changed sources asked
//!   whether they are whole.
//! - Reject limits are judged once all tables are converted, so that one run tells of all tables that exceed theirs.
//! - A table without sources gets a manifest, too: it tells that the config is applied.
//! - A manifest that can't be read, or of an older version, counts as none: all of the table is made anew, and what it
//!   had retained is deleted, since nobody can say any more what it was. One of a newer version fails the run.
//! - A clean run also deletes the folders of tables that the config doesn't have, with or without a manifest.
//! - Retained partitions that aren't as published are compared by their bytes; a file that neither the manifest nor a
//!   mark knows is deleted, with a warning in the log and a count in the result.

mod accounting;
mod changes;
mod compare;
mod converter;
mod dropped_tables;
mod failed_rejects;
mod failure;
mod lake;
mod lease;
mod manifests;
mod output;
mod prepare;
mod prepared;
mod progress;
mod publish;
mod request;
mod stager;
mod table_run;

pub use compare::{Difference, difference, differs};
pub use converter::{Converter, CsvConverter};
pub use failure::RunFailure;
pub use lease::LocalLease;
pub use request::RunRequest;

use std::path::Path;

use crate::domain::job::{RunResult, Stage};
use crate::engine::run_error::scratch_error;
use prepare::prepare_all;
use progress::Counters;
use stager::Stager;

/// Runs a pipeline.
///
/// # Errors
/// Why it failed, and whether some of it was published by then.
pub fn run<C: Converter>(request: &RunRequest<'_>, converter: &C) -> Result<RunResult, RunFailure> {
    let scratch = tempfile::Builder::new()
        .prefix("run-")
        .tempdir_in(&request.resources.scratch)
        .map_err(|e| scratch_error(&request.resources.scratch, &e))?;
    std::thread::scope(|scope| {
        let stager = Stager::new(scope, request);
        run_in(request, converter, scratch.path(), &stager)
    })
}

fn run_in<C: Converter>(
    request: &RunRequest<'_>,
    converter: &C,
    scratch: &Path,
    stager: &Stager<'_, '_>,
) -> Result<RunResult, RunFailure> {
    let counters = Counters::new(request.observer);
    let (prepared, skipped_files) = prepare_all(request, converter, &counters, scratch, stager)?;
    accounting::judge_rejects(&prepared)
        .map_err(|error| failed_rejects::keep(request, converter, &prepared, scratch, error))?;
    let dropped = if request.clean { dropped_tables::find(request)? } else { Vec::new() };
    let mut result = RunResult {
        tables: prepared.iter().map(|t| (t.name().to_owned(), t.result.clone())).collect(),
        dropped: dropped.iter().map(|d| d.table.clone()).collect(),
        skipped_files,
    };
    if !request.dry_run {
        publish::publish_all(request, &counters, stager, prepared, &dropped, &mut result)?;
    }
    counters.stage(Stage::Finishing);
    Ok(result)
}
