//! Plans and converts all tables of a run.

use std::collections::BTreeMap;
use std::path::Path;

use super::converter::Converter;
use super::failure::{self, RunFailure};
use super::lake::Lake;
use super::prepared::PreparedTable;
use super::progress::RunCounters;
use super::request::RunRequest;
use super::stager::Stager;
use super::table_run::{PlannedTable, TableRun};
use crate::domain::job::{RunError, RunErrorCode, Stage};
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
    scratch: &Path,
    stager: &Stager<'_, '_>,
) -> Result<(Vec<PreparedTable>, Vec<String>), RunFailure> {
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
            let scratch = scratch.join(format!("{index}-{replans}"));
            std::fs::create_dir_all(&scratch).map_err(|error| scratch_error(&scratch, &error))?;
            let table = TableRun { request, mapping, counters, lake: &lake };
            match table.prepare(converter, planned.remove(&index), &scratch, stager) {
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
                    lake = lake.again(request, key)?;
                    // The remaining plans are of the previous listing.
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

/// Plans every table, by index of its mapping, before the first is converted, so that a run that can't succeed fails
/// before hours of work.
fn plan_all(
    request: &RunRequest<'_>,
    counters: &RunCounters<'_>,
    lake: &Lake,
) -> Result<BTreeMap<usize, PlannedTable>, RunFailure> {
    let mappings = &request.pipeline.mappings;
    let at_a_time = if request.store.is_remote() { PARALLEL_PLANS_MAX } else { 1 };
    let planned = parallel_map(mappings, at_a_time, |mapping| {
        counters.check().map_err(failure::stopped)?;
        TableRun { request, mapping, counters, lake }.plan()
    })?;
    Ok(planned.into_iter().enumerate().collect())
}

fn no_input(request: &RunRequest<'_>, lake: &Lake) -> RunError {
    let globs: Vec<&str> = request.pipeline.mappings.iter().flat_map(|m| &m.files).map(String::as_str).collect();
    let overlooked = lake.overlooked(&request.pipeline.mappings).unwrap_or_default();
    RunError::new(RunErrorCode::NoInput, "no file in the lake matches the globs of any table")
        .path(pipeline_prefix(request.slug()))
        .detail(format!(
            "looked for `{}`{}; put files there or correct `files`. A clean run empties the tables instead",
            globs.join("`, `"),
            match overlooked.first().or(lake.keys.first()) {
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
