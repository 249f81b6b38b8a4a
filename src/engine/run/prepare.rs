//! Plans and converts all tables of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::archive;
use super::converter::Converter;
use super::failure::{self, RunFailure};
use super::lake::Lake;
use super::prepared::PreparedTable;
use super::progress::RunCounters;
use super::request::RunRequest;
use super::stager::Stager;
use super::table_run::{PlannedTable, TableRun};
use crate::domain::job::{ChangedKeys, RunError, RunErrorCode, Stage};
use crate::domain::layout::pipeline_prefix;
use crate::domain::limits::REPLANS_MAX;
use crate::engine::convert::{ConvertError, ConvertProgress};
use crate::engine::run_error::scratch_error;
use crate::sync::parallel_map;

/// Tables planned in parallel, where each request waits for the network.
const PARALLEL_PLANS_MAX: usize = 16;

/// Plans and converts every table. Also returns the files that can't be read because of their names.
pub(super) fn prepare_all<C: Converter>(
    request: &RunRequest<'_>,
    converter: &C,
    counters: &RunCounters<'_>,
    run_scratch: &Path,
    stager: &Stager<'_, '_>,
) -> Result<(Vec<PreparedTable>, Vec<String>), RunFailure> {
    let mappings = &request.pipeline.mappings;
    counters.stage(Stage::Planning);
    counters.mappings(mappings.len() as u64);
    let (mut lake, mut planned) = plan_all(request, counters, run_scratch)?;
    if !request.clean
        && !mappings.is_empty()
        && !any_source(&planned)
        && !archive::keeps_all(request.store, request.slug(), mappings)?
    {
        return Err(no_input(request, &lake).into());
    }
    let mut prepared = Vec::with_capacity(mappings.len());
    let mut replans = 0;
    for (index, mapping) in mappings.iter().enumerate() {
        loop {
            let scratch = run_scratch.join(format!("{index}-{replans}"));
            std::fs::create_dir_all(&scratch).map_err(|error| scratch_error(&scratch, &error))?;
            let table = TableRun { request, mapping, counters, lake: &lake };
            let plan = match planned.remove(&index) {
                Some(plan) => plan,
                // The lake was looked at again since.
                None => match table.plan()? {
                    Some(plan) => plan,
                    None => {
                        lake = lake.whole(request, run_scratch)?;
                        continue;
                    }
                },
            };
            match table.prepare(converter, plan, &scratch, stager) {
                Ok(table) => {
                    prepared.push(table);
                    break;
                }
                Err(ConvertError::SourceChanged { key }) => {
                    // The spooled files are unused; freeing their space lets the next attempt succeed.
                    stager.discard_folder(&scratch);
                    let _ = std::fs::remove_dir_all(&scratch);
                    if replans == REPLANS_MAX {
                        return Err(source_changed(&key).into());
                    }
                    replans += 1;
                    lake = lake.refresh(request, key, run_scratch)?;
                    // The remaining plans are of the previous listing.
                    planned.clear();
                }
                Err(ConvertError::Stopped(stop)) => return Err(failure::stopped(stop).into()),
                Err(ConvertError::Failed(error)) => return Err(error.into()),
            }
        }
        counters.mapping_done();
    }
    let unmatched_files = lake.unmatched_files(mappings)?;
    Ok((prepared, unmatched_files))
}

/// Plans by the index of their mapping.
type Plans = BTreeMap<usize, PlannedTable>;

/// Looks at the keys that events named, or at the whole lake, and plans every table before the first is converted, so that a
/// run that can't succeed fails before hours of work.
fn plan_all(request: &RunRequest<'_>, counters: &RunCounters<'_>, scratch: &Path) -> Result<(Lake, Plans), RunFailure> {
    if let ChangedKeys::Only(keys) = request.changed {
        let lake = Lake::from_keys(request, keys, BTreeSet::new())?;
        // Only a listing shows whether any table has a source.
        if let Some(planned) = plan_in(request, counters, &lake)?.filter(any_source) {
            return Ok((lake, planned));
        }
    }
    let lake = list(request, scratch)?;
    let planned = plan_in(request, counters, &lake)?.unwrap_or_default();
    Ok((lake, planned))
}

fn list(request: &RunRequest<'_>, scratch: &Path) -> Result<Lake, RunError> {
    Lake::list(request.store, request.slug(), request.clock.now(), scratch, BTreeSet::new())
}

fn any_source(planned: &Plans) -> bool {
    planned.values().any(|planned| planned.sources.listed > 0)
}

/// `None` if a table needs the whole lake.
fn plan_in(request: &RunRequest<'_>, counters: &RunCounters<'_>, lake: &Lake) -> Result<Option<Plans>, RunFailure> {
    let mappings = &request.pipeline.mappings;
    let at_a_time = if request.store.is_remote() { PARALLEL_PLANS_MAX } else { 1 };
    let planned = parallel_map(mappings, at_a_time, |mapping| {
        counters.check().map_err(failure::stopped)?;
        TableRun { request, mapping, counters, lake }.plan()
    })?;
    let count = planned.len();
    let planned: Plans = planned.into_iter().enumerate().filter_map(|(at, planned)| Some((at, planned?))).collect();
    Ok(Some(planned).filter(|planned| planned.len() == count))
}

fn no_input(request: &RunRequest<'_>, lake: &Lake) -> RunError {
    let globs: Vec<&str> = request.pipeline.mappings.iter().flat_map(|m| &m.files).map(String::as_str).collect();
    let unmatched_files = lake.unmatched_files(&request.pipeline.mappings).unwrap_or_default();
    RunError::new(RunErrorCode::NoInput, "no file in the lake matches the globs of any table")
        .path(pipeline_prefix(request.slug()))
        .detail(format!(
            "looked for `{}`{}; put files there or correct `files`. A clean run empties the tables instead",
            globs.join("`, `"),
            match unmatched_files.first().cloned().or_else(|| lake.any_key()) {
                Some(first) => format!(", but the lake has only other files, such as `{first}`"),
                None => ", but the lake has no files".to_owned(),
            }
        ))
}

fn source_changed(key: &str) -> RunError {
    RunError::new(RunErrorCode::SourceChanged, format!("source `{key}` kept changing while it was read"))
        .path(key)
        .detail(format!("planned {} times; run again once it is no longer written", REPLANS_MAX + 1))
}
