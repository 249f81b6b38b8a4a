//! `…/tables/{table}/stats`: least, greatest and missing values of each column, without reading a row.
//!
//! They are what the footers of the files say, and for partitions what the files' paths say. An answer that knows of all
//! files is kept until the table changes.
//!
//! Must not: read more of a file than its footer, or more footers than [`FILES_MAX`]; what is left out is told. Nor
//! parse a footer: a child does.

mod footers;
mod paths;

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::catalog::{CatalogTable, ConfigStatus};
use super::table_param;
use crate::domain::manifest::FileEntry;
use crate::domain::name::Slug;
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::sql::sandbox::RelationColumn;
use crate::sync::Semaphore;
use crate::web::Web;
use crate::web::access::slug_param;
use crate::web::endpoint::Endpoint;
use crate::web::failure::acquire;
use crate::web::parquet::fold::Bounds;
use crate::web::snapshot::relation_columns;
use crate::web::snapshot::selection::{Chosen, Selection};

/// Footers of one answer; of more files some are read, evenly over the table.
const FILES_MAX: usize = 2_000;
/// Answers that are made at a time.
const AT_A_TIME_MAX: usize = 4;
/// Answers that are kept.
const KEPT_MAX: usize = 64;
/// Columns of an answer that is kept.
const KEPT_COLUMNS_MAX: usize = 1_000;

static CALLS: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(AT_A_TIME_MAX));

pub(super) fn endpoints() -> Vec<Endpoint> {
    let path = "/api/p/{pipeline}/tables/{table}/stats";
    vec![
        Endpoint::get(path, "tables.stats", "Tells each column's least, greatest and missing values", stats)
            .answers::<Answer>(200, "as far as the files' footers tell")
            .errors(&[
                ErrorCode::PipelineNotFound,
                ErrorCode::InvalidConfig,
                ErrorCode::TableNotFound,
                ErrorCode::S3Error,
                ErrorCode::BucketNotFound,
            ]),
    ]
}

/// The answer: statistics that may be kept, and how the config is now.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Stats")]
struct Answer {
    #[serde(flatten)]
    stats: Arc<Stats>,
    /// Unless the tables were written under the config as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    config: Option<ConfigStatus>,
}

/// What the files of a table say of its columns.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct Stats {
    table: String,
    /// Of the whole table.
    rows: u64,
    files_read: u64,
    files_total: u64,
    /// All files were read.
    complete: bool,
    columns: Vec<ColumnStats>,
}

/// A column. Values are written as rows have them.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct ColumnStats {
    name: String,
    #[serde(rename = "type")]
    ty: String,
    /// Rows without a value, in the files that were read; null if a file doesn't tell.
    nulls: Option<u64>,
    /// Null where there is no value, or none that can be told. NaN counts as no value.
    min: Value,
    max: Value,
    /// `min` and `max` are values of the table; else there may be smaller or greater ones, or they are cut texts.
    exact: bool,
}

/// An answer, with what it was made of.
struct Kept {
    state: String,
    table: CatalogTable,
    stats: Arc<Stats>,
    used: u64,
}

/// Answers that are kept, by pipeline and table.
#[derive(Default)]
pub(in crate::web) struct KeptStats(Mutex<HashMap<String, Kept>>);

impl KeptStats {
    fn known(&self, name: &str, state: &str, table: &CatalogTable) -> Option<Arc<Stats>> {
        let mut kept = self.0.lock();
        let used = kept.values().map(|one| one.used).max().unwrap_or_default() + 1;
        let one = kept.get_mut(name).filter(|one| one.state == state && one.table == *table)?;
        one.used = used;
        Some(Arc::clone(&one.stats))
    }

    fn keep(&self, name: String, state: String, table: &CatalogTable, stats: &Arc<Stats>) {
        if stats.columns.len() > KEPT_COLUMNS_MAX {
            return;
        }
        let mut kept = self.0.lock();
        let used = kept.values().map(|one| one.used).max().unwrap_or_default() + 1;
        kept.insert(name, Kept { state, table: table.clone(), stats: Arc::clone(stats), used });
        if kept.len() > KEPT_MAX {
            let oldest = kept.iter().min_by_key(|(_, one)| one.used).map(|(name, _)| name.clone());
            oldest.and_then(|name| kept.remove(&name));
        }
    }
}

fn stats(web: &Web, request: &mut Request) -> Result<Response, ApiError> {
    let pipeline = slug_param(request, "pipeline")?;
    let catalog = web.catalog(&pipeline)?;
    let table = table_param(request, &catalog, &pipeline)?;
    let name = format!("{pipeline}/{}", table.name);
    let selection = web.select(&pipeline, table)?;
    if let Some(known) = web.stats.known(&name, &selection.state, table) {
        return Ok(answer(known, &catalog.config));
    }
    let _place = acquire(&CALLS)?;
    let stats = Arc::new(made(web, &pipeline, table, &selection)?);
    if stats.complete && !selection.marked {
        web.stats.keep(name, selection.state, table, &stats);
    }
    Ok(answer(stats, &catalog.config))
}

fn answer(stats: Arc<Stats>, config: &ConfigStatus) -> Response {
    Response::json(200, &Answer { stats, config: config.notable().cloned() })
}

impl Web {
    /// The columns of a file of a table, without those of its path; `None` if it is no longer there as the manifest says,
    /// or can't be read.
    ///
    /// # Errors
    /// `s3_error`, `bucket_not_found`, `overloaded`, `internal`.
    pub(in crate::web) fn file_columns(
        &self,
        pipeline: &Slug,
        file: &FileEntry,
    ) -> Result<Option<Vec<RelationColumn>>, ApiError> {
        let chosen = self.chosen(pipeline, std::iter::once(file))?;
        let told = footers::read(self, pipeline, &chosen.iter().collect::<Vec<_>>(), Vec::new(), true)?;
        Ok((told.read > 0).then_some(told.columns))
    }
}

fn made(web: &Web, pipeline: &Slug, table: &CatalogTable, selection: &Selection) -> Result<Stats, ApiError> {
    let files = &selection.files;
    let columns = relation_columns(&selection.columns_of(table));
    let stored = columns.iter().filter(|column| !column.partition).cloned().collect();
    let told = footers::read(web, pipeline, &chosen(files), stored, false)?;
    let files_read = told.read;
    let complete = files_read == files.len() as u64;
    let mut stored = told.bounds.into_iter();
    let columns = columns.iter().filter_map(|column| {
        let bounds = match column.partition {
            true => Some(paths::values(&column.name, &column.ty, files)),
            false => stored.next(),
        };
        bounds.map(|bounds| column_stats(column, bounds, complete))
    });
    Ok(Stats {
        table: table.name.clone(),
        rows: files.iter().filter_map(|file| file.rows).sum(),
        files_read,
        files_total: files.len() as u64,
        complete,
        columns: columns.collect(),
    })
}

fn column_stats(column: &RelationColumn, bounds: Bounds, complete: bool) -> ColumnStats {
    let Bounds { min, max, nulls, exact } = bounds;
    // Paths tell of all files.
    let exact = exact && (complete || column.partition);
    ColumnStats { name: column.name.clone(), ty: column.ty.clone(), nulls, min, max, exact }
}

/// All files, or as many as are read, evenly over all.
fn chosen(files: &[Chosen]) -> Vec<&Chosen> {
    let count = files.len().min(FILES_MAX);
    (0..count).filter_map(|at| files.get(at * files.len() / count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::store::ETag;

    #[test]
    fn of_too_many_files_some_are_chosen_evenly() {
        let file = |n: usize| Chosen {
            key: format!("{n:06}"),
            size: 1,
            etag: ETag("e".into()),
            sha256: String::new(),
            rows: None,
        };
        let files: Vec<Chosen> = (0..FILES_MAX * 3).map(file).collect();
        let few = chosen(&files);
        assert_eq!((few.len(), &few[0].key, &few[FILES_MAX - 1].key), (FILES_MAX, &files[0].key, &files[5_997].key));
        assert_eq!(chosen(&files[..7]).len(), 7);
        assert!(chosen(&[]).is_empty());
    }
}
