//! `…/status`: which CSVs of the lake a pipeline's tables contain, in one response.
//!
//! Invariants: files are matched and compared as a run does; a lake or a table with more files than the limits gives a partial
//! answer that says so. Must not: read a CSV.

use std::collections::HashSet;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;

use super::access::slug_param;
use super::endpoint::Endpoint;
use super::failure::{from_history, from_store};
use super::snapshot::manifest::Manifests;
use super::stores::Objects;
use super::tables::catalog::{CatalogTable, ConfigStatus, TableState};
use super::tables::catalogs::{Catalogs, Declared};
use crate::domain::job::{Job, JobStatus};
use crate::domain::layout::pipeline_prefix;
use crate::domain::limits::LIST_PAGE_KEYS_MAX;
use crate::domain::name::Slug;
use crate::domain::source_name::is_csv;
use crate::domain::table_log::diff::{Difference, Differences, ListedSource};
use crate::domain::table_log::entries::SourceEntry;
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::pipelines::history;
use crate::pipelines::tables::TableError;
use crate::ports::job_index::JobIndex;
use crate::ports::jobs::JobRegistry;
use crate::ports::store::Bucket;
use crate::runtime::rfc3339;

/// Maximum number of the lake's files, and of a table's sources, that are compared.
const FILES_MAX: usize = 20_000;
/// Maximum number of names of files in one list.
const NAMES_MAX: usize = 10;
/// Jobs searched for the last one that ended.
const JOBS_MAX: usize = 3;

/// The service.
pub struct PipelineStatuses {
    pub store: Objects,
    pub registry: Arc<dyn JobRegistry>,
    pub index: Arc<dyn JobIndex>,
    pub catalogs: Arc<Catalogs>,
    pub manifests: Arc<Manifests>,
}

pub(super) fn endpoints() -> Vec<Endpoint<PipelineStatuses>> {
    vec![
        Endpoint::get(
            "/api/p/{pipeline}/status",
            "pipelines.status",
            "Compares the tables with the config and the CSVs in the lake",
            status,
        )
        .response::<PipelineStatus>(200, "the status of each table")
        .errors(&[
            ErrorCode::PipelineNotFound,
            ErrorCode::TableDamaged,
            ErrorCode::Overloaded,
            ErrorCode::S3Error,
            ErrorCode::BucketNotFound,
        ]),
    ]
}

/// The tables of a pipeline compared with its config and its CSVs.
#[derive(Debug, Serialize, JsonSchema)]
struct PipelineStatus {
    config: ConfigStatus,
    /// The tables of the config in its order, then those removed from it.
    tables: Vec<TableStatus>,
    /// CSVs that no table reads or leaves out with `!`; none if the config is invalid or missing.
    not_read: FileNames,
    /// Whether all files were compared; otherwise there may be more than listed.
    complete: bool,
    /// Whether a job is queued or running.
    active: bool,
    /// The last job that ended.
    last_job: Option<EndedJob>,
}

/// A table compared with the CSVs that it reads.
#[derive(Debug, Serialize, JsonSchema)]
struct TableStatus {
    name: String,
    state: TableState,
    /// The globs of its sources, relative to the pipeline's folder.
    globs: Vec<String>,
    rows: u64,
    /// Rows of its sources that were rejected.
    rows_rejected: u64,
    /// Sources whose rows it has.
    sources: u64,
    /// Sources whose CSV was removed and whose rows are kept.
    archived: u64,
    /// CSVs that are new or changed since the table was written.
    pending: FileNames,
    /// Pending CSVs that were modified after the last job had started, so that its outcome doesn't cover them.
    untried: FileNames,
    /// Sources whose CSV was deleted; the next run removes their rows.
    removed: RemovedSources,
}

/// Files, relative to the pipeline's folder.
#[derive(Debug, Default, Serialize, JsonSchema)]
struct FileNames {
    count: u64,
    /// The first ten.
    first: Vec<String>,
}

/// Sources that left the lake, with their rows in the table.
#[derive(Debug, Default, Serialize, JsonSchema)]
struct RemovedSources {
    count: u64,
    rows: u64,
    /// The first ten.
    first: Vec<String>,
}

/// A job that has ended.
#[derive(Debug, Serialize, JsonSchema)]
struct EndedJob {
    job_id: String,
    status: JobStatus,
    /// RFC 3339.
    finished_at: Option<String>,
    /// Code and message of its failure.
    error_code: Option<String>,
    error_message: Option<String>,
}

impl FileNames {
    fn add(&mut self, name: &str) {
        self.count += 1;
        if self.first.len() < NAMES_MAX {
            self.first.push(name.to_owned());
        }
    }
}

impl TableStatus {
    /// `tried_at`: start of the last job.
    fn add_pending(&mut self, file: &ListedSource, tried_at: Option<DateTime<Utc>>) {
        self.pending.add(&file.key);
        if tried_at.is_none_or(|tried_at| file.modified > tried_at) {
            self.untried.add(&file.key);
        }
    }
}

impl RemovedSources {
    fn add(&mut self, name: String, rows: u64) {
        self.count += 1;
        self.rows += rows;
        if self.first.len() < NAMES_MAX {
            self.first.push(name);
        }
    }
}

fn status(service: &PipelineStatuses, request: &mut Request) -> Result<Response, ApiError> {
    let pipeline = slug_param(request, "pipeline")?;
    let catalog = service.catalogs.catalog(&pipeline)?;
    let declared = service.catalogs.declared(&pipeline)?;
    let lake = LakeFiles::list(&service.store, &pipeline, declared.as_deref())?;
    let page = history::page(&*service.store, &*service.registry, &*service.index, &pipeline, None, JOBS_MAX)
        .map_err(from_history)?;
    let has_ended = |job: &&Job| matches!(job.status, JobStatus::Completed | JobStatus::Failed);
    let last_ended = page.jobs.iter().find(has_ended);
    let tried_at = last_ended.map(|job| job.started_at.unwrap_or(job.enqueued_at));
    let mut complete = lake.complete;
    let mut tables = Vec::new();
    for table in catalog.tables.iter().filter(|table| !table.is_system()) {
        let (table, whole) = compared(service, &pipeline, table, declared.as_deref(), &lake, tried_at)?;
        complete &= whole;
        tables.push(table);
    }
    let last_job = last_ended.map(|job| EndedJob {
        job_id: job.job_id.to_string(),
        status: job.status,
        finished_at: job.finished_at.map(rfc3339),
        error_code: job.error.as_ref().map(|error| error.code.to_string()),
        error_message: job.error.as_ref().map(|error| error.message.clone()),
    });
    let status = PipelineStatus {
        config: catalog.config.clone(),
        tables,
        not_read: lake.not_read,
        complete,
        active: !page.jobs.iter().all(|job| has_ended(&job)),
        last_job,
    };
    Ok(Response::json(200, &status))
}

/// The files of a pipeline in the lake.
struct LakeFiles {
    /// In key order, with the tables that read each.
    files: Vec<(ListedSource, Vec<String>)>,
    not_read: FileNames,
    /// Whether these are all.
    complete: bool,
}

impl LakeFiles {
    fn list(store: &Objects, pipeline: &Slug, declared: Option<&Declared>) -> Result<Self, ApiError> {
        let prefix = pipeline_prefix(pipeline);
        let mut lake = Self { files: Vec::new(), not_read: FileNames::default(), complete: true };
        let mut after: Option<String> = None;
        loop {
            let page = store.list(Bucket::Lake, &prefix, None, after.as_deref(), LIST_PAGE_KEYS_MAX);
            let page = page.map_err(from_store)?;
            for object in page.objects {
                let Some(key) = object.key.strip_prefix(&prefix) else { continue };
                let tables = declared.and_then(|declared| declared.reading(key));
                let is_left_out = declared.is_some_and(|declared| declared.leaves_out(key));
                if is_csv(key) && tables.as_ref().is_some_and(Vec::is_empty) && !is_left_out {
                    lake.not_read.add(key);
                }
                let listed = ListedSource {
                    key: key.to_owned(),
                    size: object.size,
                    etag: object.etag.map(|tag| tag.0),
                    modified: object.modified,
                    variant: None,
                };
                lake.files.push((listed, tables.unwrap_or_default()));
            }
            match page.next {
                Some(_) if lake.files.len() >= FILES_MAX => lake.complete = false,
                Some(next) => {
                    after = Some(next);
                    continue;
                }
                None => {}
            }
            return Ok(lake);
        }
    }

    /// The last key of the known part of the lake; `None` if all of it is known.
    fn known_to(&self) -> Option<&str> {
        self.files.last().filter(|_| !self.complete).map(|(file, _)| file.key.as_str())
    }
}

/// A table's status, and whether all its sources were compared.
fn compared(
    service: &PipelineStatuses,
    pipeline: &Slug,
    table: &CatalogTable,
    declared: Option<&Declared>,
    lake: &LakeFiles,
    tried_at: Option<DateTime<Utc>>,
) -> Result<(TableStatus, bool), ApiError> {
    let mapping = declared.and_then(|declared| declared.table(&table.name));
    let mut status = TableStatus {
        name: table.name.clone(),
        state: table.state,
        globs: mapping.map(|mapping| mapping.globs().to_vec()).unwrap_or_default(),
        rows: 0,
        rows_rejected: 0,
        sources: 0,
        archived: 0,
        pending: FileNames::default(),
        untried: FileNames::default(),
        removed: RemovedSources::default(),
    };
    let found = service.manifests.present(pipeline, &table.name, |found| {
        let Some(root) = found.value.as_ref() else { return Ok(Some(None)) };
        service.manifests.read(pipeline, root, |store, maps| {
            let mut reader = service.manifests.source_shards.reader(store);
            let sources = maps.sources.entries(&mut reader).take(FILES_MAX);
            Ok(Some((root.totals, differences(lake, &table.name, sources)?)))
        })
    });
    let found = match found {
        Ok(found) => found.flatten(),
        // Written by a newer version: reported when the table is read.
        Err(error) if error.code() == ErrorCode::InvalidConfig => return Ok((status, false)),
        Err(error) => return Err(error),
    };
    let Some((totals, differences)) = found else {
        for (file, _) in lake.files.iter().filter(|(_, tables)| tables.contains(&table.name)) {
            status.add_pending(file, tried_at);
        }
        return Ok((status, true));
    };
    (status.rows, status.rows_rejected) = (totals.rows, totals.rows_rejected);
    (status.sources, status.archived) = (totals.sources, totals.archived);
    let in_lake: HashSet<&str> = lake.files.iter().map(|(file, _)| file.key.as_str()).collect();
    let keeps_rows = mapping.is_some_and(|mapping| mapping.keeps_rows());
    for difference in differences {
        match difference {
            Difference::New(file) | Difference::Changed(file) => status.add_pending(&file, tried_at),
            Difference::Removed(key, entry) => {
                // The globs of a changed config may leave out a file that is still there.
                let is_gone = !entry.archived && !keeps_rows && !in_lake.contains(key.as_str());
                if is_gone && lake.known_to().is_none_or(|last| key.as_str() <= last) {
                    status.removed.add(key, entry.rows_written);
                }
            }
            Difference::Unknown(..) | Difference::Returned(..) => {}
        }
    }
    Ok((status, totals.sources <= FILES_MAX as u64))
}

fn differences(
    lake: &LakeFiles,
    table: &str,
    sources: impl Iterator<Item = Result<(String, SourceEntry), TableError>>,
) -> Result<Vec<Difference>, TableError> {
    let own = lake.files.iter().filter(|(_, tables)| tables.iter().any(|name| name == table));
    Differences::new(own.map(|(file, _)| Ok(file.clone())), sources).collect()
}
