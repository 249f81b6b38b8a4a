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
mod dropped;
mod failure;
mod lake;
mod lease;
mod manifests;
mod output;
mod progress;
mod publish;
mod rejects;
mod settled;
mod stager;
mod table;

pub use compare::{Difference, difference, differs};
pub use converter::{Converter, CsvConverter};
pub use failure::RunFailure;
pub use lease::LocalLease;

use std::collections::BTreeMap;
use std::path::Path;

use crate::domain::job::{RunError, RunErrorCode, RunResult, Stage};
use crate::domain::limits::REPLANS_MAX;
use crate::domain::name::Slug;
use crate::domain::pipeline::Pipeline;
use crate::engine::convert::{ConvertError, ConvertProgress, Resources};
use crate::ports::store::Lease;
use crate::ports::{Expressions, ObjectStore, RunObserver};
use crate::runtime::Clock;
use crate::sync::parallel_map;

use lake::Lake;
use progress::Counters;
use stager::Stager;
use table::{Planned, Prepared, Table};

/// HEADs that are made at the same time, where a listing tells too little.
const HEADS_AT_ONCE: usize = 64;
/// Tables that are planned at the same time where each request waits for a network.
const PLANS_AT_ONCE: usize = 16;

/// Everything that a run needs to know and to use.
#[derive(Clone, Copy)]
pub struct RunRequest<'a> {
    pub pipeline: &'a Pipeline,
    pub job_id: &'a str,
    /// Only sources whose key, relative to the pipeline's prefix, starts with it may enter the changed set; `""`: all.
    pub prefix: &'a str,
    pub clean: bool,
    /// Stop before publishing, and tell what would be done.
    pub dry_run: bool,
    /// End with `source_being_written`, before anything is converted, if somebody may still be writing a source that is
    /// to be read. For runs that nobody waits for, which can be done again later.
    pub settle: bool,
    /// Versions of the Parquet writer and whatever else the bytes of a table depend on; those of the expressions are
    /// added to it.
    pub versions: &'a str,
    pub store: &'a dyn ObjectStore,
    pub expressions: &'a dyn Expressions,
    pub clock: &'a dyn Clock,
    /// Goes with every write; names the pipeline.
    pub lease: &'a dyn Lease,
    pub observer: &'a dyn RunObserver,
    /// Scratch is an existing folder; the run makes one of its own in it and removes that at its end.
    pub resources: &'a Resources,
}

impl RunRequest<'_> {
    pub fn slug(&self) -> &Slug {
        self.lease.slug()
    }
}

/// Runs a pipeline.
///
/// # Errors
/// Why it failed, and whether some of it was published by then.
pub fn run<C: Converter>(request: &RunRequest<'_>, converter: &C) -> Result<RunResult, RunFailure> {
    let scratch = tempfile::Builder::new()
        .prefix("run-")
        .tempdir_in(&request.resources.scratch)
        .map_err(|e| failure::scratch_error(&request.resources.scratch, &e))?;
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
        .map_err(|error| rejects::keep(request, converter, &prepared, scratch, error))?;
    let dropped = if request.clean { dropped::find(request)? } else { Vec::new() };
    let mut result = RunResult {
        tables: prepared.iter().map(|t| (t.name().to_owned(), t.result())).collect(),
        dropped: dropped.iter().map(|d| d.table.clone()).collect(),
        skipped_files,
    };
    if !request.dry_run {
        publish::publish_all(request, &counters, stager, prepared, &dropped, &mut result)?;
    }
    counters.stage(Stage::Finishing);
    Ok(result)
}

/// Plans and converts every table. Gives the files that can't be read for their names, too.
fn prepare_all<C: Converter>(
    request: &RunRequest<'_>,
    converter: &C,
    counters: &Counters<'_>,
    scratch: &Path,
    stager: &Stager<'_, '_>,
) -> Result<(Vec<Prepared>, Vec<String>), RunFailure> {
    let mappings = &request.pipeline.mappings;
    counters.stage(Stage::Planning);
    counters.mappings(mappings.len() as u64);
    let mut lake = Lake::list(request.store, request.slug(), request.clock.now(), BTreeMap::new())?;
    if !request.clean && !mappings.is_empty() {
        let mut any = false;
        for mapping in mappings {
            any = any || lake.matches_any(mapping)?;
        }
        if !any {
            return Err(no_input(request, &lake).into());
        }
    }
    let mut planned = plan_all(request, counters, &lake)?;
    let mut prepared = Vec::with_capacity(mappings.len());
    let mut replans = 0;
    for (index, mapping) in mappings.iter().enumerate() {
        loop {
            let scratch = failure::make_folder(&scratch.join(format!("{index}-{replans}")))?;
            let table = Table { request, mapping, counters, lake: &lake };
            match table.prepare(converter, planned.remove(&index), &scratch, stager) {
                Ok(table) => {
                    prepared.push(table);
                    break;
                }
                Err(ConvertError::SourceChanged { key }) => {
                    // Nobody reads what was spooled so far; without room for it to stay, the next try could fail.
                    stager.forget(&scratch);
                    let _ = std::fs::remove_dir_all(&scratch);
                    if replans == REPLANS_MAX {
                        return Err(source_changed(&key).into());
                    }
                    replans += 1;
                    lake = lake.again(request, key)?;
                    // The plans that are left are of the listing before.
                    planned.clear();
                }
                Err(ConvertError::Stopped(stop)) => return Err(failure::stopped(stop).into()),
                Err(ConvertError::Failed(error)) => return Err(error.into()),
            }
        }
        counters.mapping_done();
    }
    let overlooked = lake.overlooked(mappings)?;
    Ok((prepared, overlooked))
}

/// Plans every table before the first is converted, by its place among the mappings, so that what makes the run
/// impossible shows before hours of work.
fn plan_all(
    request: &RunRequest<'_>,
    counters: &Counters<'_>,
    lake: &Lake,
) -> Result<BTreeMap<usize, Planned>, RunFailure> {
    let mappings = &request.pipeline.mappings;
    let at_a_time = if request.store.is_remote() { PLANS_AT_ONCE } else { 1 };
    let planned = parallel_map(mappings, at_a_time, |mapping| {
        counters.check().map_err(failure::stopped)?;
        Table { request, mapping, counters, lake }.plan()
    })?;
    Ok(planned.into_iter().enumerate().collect())
}

fn no_input(request: &RunRequest<'_>, lake: &Lake) -> RunError {
    let globs: Vec<&str> = request.pipeline.mappings.iter().flat_map(|m| &m.files).map(String::as_str).collect();
    let overlooked = lake.overlooked(&request.pipeline.mappings).unwrap_or_default();
    RunError::new(RunErrorCode::NoInput, "no file in the lake matches the globs of any table")
        .path(crate::domain::layout::pipeline_prefix(request.slug()))
        .detail(format!(
            "looked for `{}`{}; put files there or correct `files`. A clean run empties the tables instead",
            globs.join("`, `"),
            match overlooked.first().or(lake.keys.first()) {
                Some(first) => format!("; the lake has other files, such as `{first}`"),
                None => " where there are no files at all".to_owned(),
            }
        ))
}

fn source_changed(key: &str) -> RunError {
    RunError::new(RunErrorCode::SourceChanged, format!("source `{key}` changed again and again while it was read"))
        .path(key)
        .detail(format!("planned {} times; run again once nothing writes to it", REPLANS_MAX + 1))
}
