//! `…/tables/{table}/commits`: the versions of a table that can be read.

use schemars::JsonSchema;
use serde::Serialize;

use super::service::{Tables, table_param};
use crate::domain::layout::REJECTED_ROWS_TABLE;
use crate::domain::table_log::root::Root;
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::web::access::{number_query, slug_param};
use crate::web::endpoint::Endpoint;

/// Default and largest page size.
const PAGE_DEFAULT: u64 = 50;
const PAGE_MAX: u64 = 200;
/// Largest offset.
const OFFSET_MAX: u64 = 1 << 53;

pub(super) fn endpoints() -> Vec<Endpoint<Tables>> {
    let path = "/api/p/{pipeline}/tables/{table}/commits";
    vec![
        Endpoint::get(path, "tables.commits", "Lists the versions of a table that can be read", commits)
            .query::<u64>("limit", "page size: at most 200, 50 by default")
            .query::<u64>("offset", "versions to skip")
            .answers::<CommitList>(200, "the versions, newest first")
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

/// The versions of a table: the present one, and those that `keep_history` keeps.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[schemars(rename = "Commits")]
struct CommitList {
    commits: Vec<TableCommit>,
    total: u64,
}

/// A version of a table.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Commit")]
struct TableCommit {
    sequence: u64,
    /// RFC 3339, by the store's clock.
    committed_at: String,
    /// The run that published it.
    job_id: String,
    rows: u64,
    files: u64,
    bytes: u64,
    sources: u64,
    /// Sources whose CSVs left the lake.
    sources_archived: u64,
}

impl From<Root> for TableCommit {
    fn from(root: Root) -> Self {
        let Root { sequence, committed_at, job_id, totals, .. } = root;
        let (rows, files, bytes) = (totals.rows, totals.files, totals.bytes);
        let (sources, sources_archived) = (totals.sources, totals.archived);
        Self { sequence, committed_at, job_id, rows, files, bytes, sources, sources_archived }
    }
}

fn commits(tables: &Tables, request: &mut Request) -> Result<Response, ApiError> {
    let pipeline = slug_param(request, "pipeline")?;
    let limit = number_query(request, "limit", 1..=PAGE_MAX)?.unwrap_or(PAGE_DEFAULT) as usize;
    let offset = number_query(request, "offset", 0..=OFFSET_MAX)?.unwrap_or(0);
    let offset = usize::try_from(offset).unwrap_or(usize::MAX);
    let catalog = tables.catalogs.catalog(&pipeline)?;
    let table = table_param(request, &catalog, &pipeline)?;
    if table.is_system() {
        let message = format!("`{REJECTED_ROWS_TABLE}` has no versions of its own; see those of each table");
        return Err(ApiError::new(ErrorCode::TableNotFound, message));
    }
    let found = tables.manifests.present(&pipeline, &table.name, |found| {
        let Some(root) = found.value.as_ref() else { return Ok(Some(CommitList::default())) };
        let page = tables.manifests.read(&pipeline, root, |store, _| store.commits(root, offset, limit))?;
        let total = root.earlier().len() as u64 + 1;
        Ok(page.map(|roots| CommitList { commits: roots.into_iter().map(TableCommit::from).collect(), total }))
    })?;
    Ok(Response::json(200, &found.unwrap_or_default()))
}
