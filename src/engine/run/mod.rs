//! Runs a pipeline: plan, convert, merge, publish, finish.
//!
//! Invariant: no table is published before every table is converted and checked; a run that fails because of rejects writes
//! these alone. Then tables are published one by one ([`publish`]), each by one conditional write of its root. A run
//! that dies leaves objects that no root names; its intents name them, and the next run deletes them.
//!
//! Must not: decide what a table's files are; that is `domain::table_log`.
//!
//! Design decisions:
//! - If a source changes while it is read, tables converted before are kept; the run continues with new metadata of the
//!   lake from the affected table.
//! - All tables are planned before the first is converted. If requested, this checks that their changed sources are
//!   complete.
//! - Reject limits are checked once all tables are converted, so one run reports all tables that exceed theirs.
//! - A table without sources has a manifest too, which records that the config was applied.
//! - A manifest that is unreadable, of an older version, or lacks a shard is ignored: the table is rebuilt, and what
//!   the new one doesn't name is deleted. A newer version fails the run.
//! - A clean run also deletes the folders of tables that are not in the config, with or without a manifest.
//! - A run lists a table's files only if it rebuilds the table. It notices a stored file that is lost once it needs its
//!   rows, and reads the CSVs again; `pipelines::tables` finds all others on request.

mod accounting;
mod archive;
mod compare;
mod converter;
mod delta_files;
mod dropped_tables;
mod edits;
mod failed_rejects;
mod failure;
mod footer_bounds;
mod iceberg_files;
mod lake;
mod lease;
mod listing;
mod output;
mod prepare;
mod prepared;
mod progress;
mod publish;
mod published_files;
mod request;
mod result;
mod sources;
mod stager;
mod stored_files;
mod table_run;
mod update;

pub use compare::{Difference, difference, differs};
pub use converter::{Converter, CsvConverter};
pub use failure::{RunFailure, stopped};
pub use lease::LocalLease;
pub use published_files::{PublishedFile, PublishedFiles};
pub use request::RunRequest;

use std::path::Path;

use crate::domain::job::{RunResult, Stage};
use crate::engine::run_error::scratch_error;
use prepare::prepare_all;
use progress::RunCounters;
use stager::Stager;

/// Runs a pipeline.
///
/// # Errors
/// Why the run failed, and whether some of it was published.
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
    let counters = RunCounters::new(request.observer);
    let (prepared, skipped_files) = prepare_all(request, converter, &counters, scratch, stager)?;
    accounting::check_reject_limits(&prepared)
        .map_err(|error| failed_rejects::keep(request, converter, &prepared, scratch, error))?;
    let dropped = if request.clean { dropped_tables::find(request)? } else { Vec::new() };
    let mut result = RunResult {
        tables: prepared.iter().map(|t| (t.name.clone(), t.result.clone())).collect(),
        dropped: dropped.iter().map(|d| d.table.clone()).collect(),
        skipped_files,
        rejected_rows: if request.dry_run { failed_rejects::of_dry_run(&prepared) } else { Vec::new() },
    };
    if !request.dry_run {
        publish::publish_all(request, &counters, stager, prepared, &dropped, &mut result)?;
    }
    counters.stage(Stage::Finishing);
    Ok(result)
}
