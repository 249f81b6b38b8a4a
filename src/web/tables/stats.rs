//! `…/tables/{table}/stats`: minimum, maximum and null count of each column, without reading rows.
//!
//! The statistics come from the footers of the files, and for partitions from the files' paths. Complete statistics are
//! cached until the table changes.
//!
//! Must not: read more of a file than its footer, or more than [`FILES_MAX`] footers (a response says how many it read);
//! parse a footer, which a child does.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, StringArray};
use arrow::compute::cast;
use schemars::JsonSchema;
use serde::Serialize;

use super::catalog::{CatalogTable, ConfigStatus, relation_columns};
use super::service::{ColumnStats, Stats, Tables, table_param};
use crate::domain::name::Slug;
use crate::domain::partition::parse_segment;
use crate::domain::pipeline::types::DataType;
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::ports::arrow_types::arrow_type;
use crate::sql::sandbox::RelationColumn;
use crate::sync::Semaphore;
use crate::web::access::slug_param;
use crate::web::endpoint::Endpoint;
use crate::web::failure::acquire;
use crate::web::parquet::fold::{Bounds, extremes};
use crate::web::snapshot::manifest::TRIES_MAX;
use crate::web::snapshot::selection::{Selection, TableFile};

/// Maximum number of footers read for a response; larger tables are sampled evenly.
const FILES_MAX: usize = 2_000;
/// Concurrent computations.
const CONCURRENT_MAX: usize = 4;
static CALLS: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(CONCURRENT_MAX));

pub(super) fn endpoints() -> Vec<Endpoint<Tables>> {
    let path = "/api/p/{pipeline}/tables/{table}/stats";
    vec![
        Endpoint::get(path, "tables.stats", "Shows minimum, maximum and null count of each column", stats)
            .response::<Answer>(200, "the statistics, from the files' footers")
            .errors(&[
                ErrorCode::PipelineNotFound,
                ErrorCode::InvalidConfig,
                ErrorCode::TableNotFound,
                ErrorCode::TableDamaged,
                ErrorCode::Overloaded,
                ErrorCode::S3Error,
                ErrorCode::BucketNotFound,
            ]),
    ]
}

/// The response: statistics, and the config's status.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Stats")]
struct Answer {
    #[serde(flatten)]
    stats: Arc<Stats>,
    /// Present unless the tables were written under the current config.
    #[serde(skip_serializing_if = "Option::is_none")]
    config: Option<ConfigStatus>,
}

fn stats(tables: &Tables, request: &mut Request) -> Result<Response, ApiError> {
    let pipeline = slug_param(request, "pipeline")?;
    let catalog = tables.catalogs.catalog(&pipeline)?;
    let table = table_param(request, &catalog, &pipeline)?;
    let name = format!("{pipeline}/{}", table.name);
    let mut selection = tables.snapshots.select(&pipeline, table, None)?;
    if let Some(known) = tables.stats.get(&name, &selection.state, table) {
        return Ok(answer(known, &catalog.config));
    }
    let _permit = acquire(&CALLS)?;
    let mut stats = compute(tables, &pipeline, table, &selection)?;
    // A commit may have deleted files that were to be read.
    for _ in 1..TRIES_MAX {
        if stats.complete {
            break;
        }
        let present = tables.snapshots.select(&pipeline, table, None)?;
        if present.state == selection.state {
            break;
        }
        selection = present;
        stats = compute(tables, &pipeline, table, &selection)?;
    }
    let stats = Arc::new(stats);
    if stats.complete {
        tables.stats.insert(name, selection.state, table, &stats);
    }
    Ok(answer(stats, &catalog.config))
}

fn answer(stats: Arc<Stats>, config: &ConfigStatus) -> Response {
    Response::json(200, &Answer { stats, config: config.unless_applied().cloned() })
}

fn compute(tables: &Tables, pipeline: &Slug, table: &CatalogTable, selection: &Selection) -> Result<Stats, ApiError> {
    let files = &selection.files;
    let columns = relation_columns(&selection.columns_of(table));
    let stored = columns.iter().filter(|column| !column.partition).cloned().collect();
    let summary = tables.footers.read(pipeline, &sample(files), stored)?;
    let files_read = summary.read;
    let complete = files_read == files.len() as u64;
    let mut stored = summary.bounds.into_iter();
    let columns = columns.iter().filter_map(|column| {
        let bounds = match column.partition {
            true => Some(partition_bounds(&column.name, &column.ty, files)),
            false => stored.next(),
        };
        bounds.map(|bounds| column_stats(column, bounds, complete))
    });
    Ok(Stats {
        table: table.name.clone(),
        rows: files.iter().map(|file| file.rows).sum(),
        files_read,
        files_total: files.len() as u64,
        complete,
        columns: columns.collect(),
    })
}

fn column_stats(column: &RelationColumn, bounds: Bounds, complete: bool) -> ColumnStats {
    let Bounds { min, max, nulls, exact } = bounds;
    // Partition values come from the paths of all files.
    let exact = exact && (complete || column.partition);
    ColumnStats { name: column.name.clone(), ty: column.ty.clone(), nulls, min, max, exact }
}

/// A sample of at most [`FILES_MAX`] files, evenly spaced.
fn sample(files: &[TableFile]) -> Vec<&TableFile> {
    let count = files.len().min(FILES_MAX);
    (0..count).filter_map(|at| files.get(at * files.len() / count)).collect()
}

/// The bounds of a partition column of type `ty`, from the paths of all files.
fn partition_bounds(name: &str, ty: &str, files: &[TableFile]) -> Bounds {
    let (mut texts, mut nulls, mut whole) = (BTreeSet::new(), Some(0), true);
    for file in files {
        match in_path(name, &file.key) {
            Some(Some(text)) => drop(texts.insert(text)),
            Some(None) => nulls = nulls.map(|sum: u64| sum + file.rows),
            None => whole = false,
        }
    }
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values(texts));
    let (array, read) = typed(texts, ty);
    let (min, max, exact) = extremes(&array);
    Bounds { min, max, nulls: nulls.filter(|_| whole), exact: exact && whole && read }
}

/// The value in the path, which may be null; `None` if the path lacks the column.
fn in_path(name: &str, key: &str) -> Option<Option<String>> {
    let mut segments = key.split('/').filter_map(parse_segment);
    segments.find(|(own, _)| own == name).map(|(_, value)| value)
}

/// Parses texts as values of their type; returns whether all could be parsed.
fn typed(texts: ArrayRef, ty: &str) -> (ArrayRef, bool) {
    let ty = match DataType::parse(ty) {
        // Rows represent these types as text.
        None | Some(DataType::Uuid | DataType::Json | DataType::String) => return (texts, true),
        Some(ty) => arrow_type(ty),
    };
    match cast(&texts, &ty) {
        Ok(array) => {
            let read = array.null_count() == 0;
            (array, read)
        }
        Err(_) => (texts, false),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn files_beyond_the_limit_are_sampled_evenly() {
        let file = |n: usize| TableFile { key: format!("{n:06}"), size: 1, sha256: String::new(), rows: 1 };
        let files: Vec<TableFile> = (0..FILES_MAX * 3).map(file).collect();
        let few = sample(&files);
        assert_eq!((few.len(), &few[0].key, &few[FILES_MAX - 1].key), (FILES_MAX, &files[0].key, &files[5_997].key));
        assert_eq!(sample(&files[..7]).len(), 7);
        assert!(sample(&[]).is_empty());
    }

    fn bounds(ty: &str, paths: &[&str]) -> (Value, Value, Option<u64>, bool) {
        let file = |path: &&str| TableFile {
            key: format!("t/{path}/part-00000.parquet"),
            size: 1,
            sha256: String::new(),
            rows: 3,
        };
        let files: Vec<TableFile> = paths.iter().map(file).collect();
        let Bounds { min, max, nulls, exact } = partition_bounds("p", ty, &files);
        (min, max, nulls, exact)
    }

    #[test]
    fn partition_values_compare_by_type() {
        for (ty, paths, min, max) in [
            ("int32", &["p=9", "p=10", "p=-1"][..], json!(-1), json!(10)),
            ("string", &["p=9", "p=10", "p=a%2Fb"], json!("10"), json!("a/b")),
            ("date", &["p=2013-02-01", "p=2013-01-31"], json!("2013-01-31"), json!("2013-02-01")),
            ("int64", &["p=9007199254740993", "p=1"], json!(1), json!("9007199254740993")),
            ("decimal(5,2)", &["p=10.00", "p=9.50"], json!("9.50"), json!("10.00")),
            ("boolean", &["p=true", "p=false"], json!(false), json!(true)),
        ] {
            assert_eq!(bounds(ty, paths), (min, max, Some(0), true), "{ty}");
        }
    }

    #[test]
    fn rows_of_the_null_partition_count_as_nulls() {
        let null = "p=__HIVE_DEFAULT_PARTITION__";
        assert_eq!(bounds("int32", &[null, "p=1"]), (json!(1), json!(1), Some(3), true));
        assert_eq!(bounds("int32", &[null]), (Value::Null, Value::Null, Some(3), true));
        assert_eq!(bounds("int32", &["q=1"]), (Value::Null, Value::Null, None, false));
        assert!(!bounds("int32", &["p=x", "p=1"]).3);
    }
}
