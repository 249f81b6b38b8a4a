//! `…/tables/{table}/commits`: the readable versions of a table, their changes, and the restore of one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::service::{Tables, table_param};
use crate::domain::layout::REJECTED_ROWS_TABLE;
use crate::domain::name::Slug;
use crate::domain::table_log::history::AsOf;
use crate::domain::table_log::root::Root;
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::pipelines::tables::{Comparison, FileCounts, FoundRoot, SourceChange, compare, restore};
use crate::web::access::{clipped, number_query, slug_param};
use crate::web::endpoint::Endpoint;
use crate::web::failure::{from_table, version_not_found};

/// Default and largest page size.
const PAGE_DEFAULT: u64 = 50;
const PAGE_MAX: u64 = 200;
/// Largest offset.
const OFFSET_MAX: u64 = 1 << 53;
/// Default and largest number of sources and of partitions in a version's changes.
const CHANGES_DEFAULT: u64 = 100;
const CHANGES_MAX: u64 = 1_000;
const RESTORE_BYTES_MAX: u64 = 4 << 10;

pub(super) fn endpoints() -> Vec<Endpoint<Tables>> {
    let path = "/api/p/{pipeline}/tables/{table}/commits";
    let common = [
        ErrorCode::PipelineNotFound,
        ErrorCode::InvalidConfig,
        ErrorCode::TableNotFound,
        ErrorCode::TableDamaged,
        ErrorCode::Overloaded,
        ErrorCode::S3Error,
        ErrorCode::BucketNotFound,
    ];
    let one = "/api/p/{pipeline}/tables/{table}/commits/{sequence}";
    let restoring = "/api/p/{pipeline}/tables/{table}/restore";
    vec![
        Endpoint::get(path, "tables.commits", "Lists the versions of a table that can be read", commits)
            .query::<u64>("limit", "page size: at most 200, 50 by default")
            .query::<u64>("offset", "versions to skip")
            .response::<CommitList>(200, "the versions, newest first")
            .errors(&common),
        Endpoint::get(one, "tables.commit", "Shows what a version changed", changes)
            .query::<u64>("limit", "maximum numbers of sources and of partitions: at most 1,000, 100 by default")
            .response::<CommitChanges>(200, "the version and its changes")
            .errors(&common)
            .errors(&[ErrorCode::VersionNotFound]),
        Endpoint::post(restoring, "tables.restore", "Restores an earlier version", restore_version)
            .takes::<RestoreRequest>(RESTORE_BYTES_MAX)
            .response::<TableCommit>(200, "the new version")
            .errors(&common)
            .errors(&[ErrorCode::VersionNotFound, ErrorCode::PipelineBusy, ErrorCode::InvalidRequest]),
    ]
}

/// The versions of a table: the current one, and those that `keep_history` keeps.
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
    /// The earlier version that this one restored, if any. `job_id` is of that version's run.
    restored: Option<u64>,
}

impl From<Root> for TableCommit {
    fn from(root: Root) -> Self {
        let Root { sequence, committed_at, job_id, totals, restored, .. } = root;
        let (rows, files, bytes) = (totals.rows, totals.files, totals.bytes);
        let (sources, sources_archived) = (totals.sources, totals.archived);
        Self { sequence, committed_at, job_id, rows, files, bytes, sources, sources_archived, restored }
    }
}

/// A version, and what it changed.
#[derive(Debug, Serialize, JsonSchema)]
struct CommitChanges {
    #[serde(flatten)]
    commit: TableCommit,
    /// The version before; null if it is no longer kept, or if this is the first one.
    previous: Option<u64>,
    /// Null without `previous`.
    changes: Option<Changes>,
}

/// What differs from the version before.
#[derive(Debug, Serialize, JsonSchema)]
struct Changes {
    /// The first ones, in the order of their keys.
    sources: Vec<ChangedSource>,
    /// All of them.
    sources_changed: u64,
    /// The first ones, in order.
    partitions: Vec<ChangedPartition>,
    /// All of them.
    partitions_changed: u64,
    files_added: FileTotals,
    files_removed: FileTotals,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ChangedSource {
    source: String,
    change: ChangeKind,
    /// Its rows in the table before and after.
    rows_before: u64,
    rows_after: u64,
}

/// How a source differs. `archived`: its CSV left the lake, and its rows stay; `returned`: its CSV came back.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ChangeKind {
    Added,
    Changed,
    Removed,
    Archived,
    Returned,
}

impl From<SourceChange> for ChangeKind {
    fn from(change: SourceChange) -> Self {
        match change {
            SourceChange::Added => Self::Added,
            SourceChange::Changed => Self::Changed,
            SourceChange::Removed => Self::Removed,
            SourceChange::Archived => Self::Archived,
            SourceChange::Returned => Self::Returned,
        }
    }
}

/// A partition with files that differ. Its rows in other files are not counted.
#[derive(Debug, Serialize, JsonSchema)]
struct ChangedPartition {
    partition: String,
    /// Rows of the files that were removed.
    rows_before: u64,
    /// Rows of the files that were added.
    rows_after: u64,
}

#[derive(Debug, Serialize, JsonSchema)]
struct FileTotals {
    files: u64,
    rows: u64,
    bytes: u64,
}

impl From<FileCounts> for FileTotals {
    fn from(FileCounts { files, rows, bytes }: FileCounts) -> Self {
        Self { files, rows, bytes }
    }
}

impl From<Comparison> for Changes {
    fn from(found: Comparison) -> Self {
        let sources = found.sources.into_iter().map(|source| ChangedSource {
            source: source.key,
            change: source.change.into(),
            rows_before: source.before,
            rows_after: source.after,
        });
        let partitions = found.partitions.into_iter().map(|partition| ChangedPartition {
            partition: partition.partition,
            rows_before: partition.before,
            rows_after: partition.after,
        });
        Self {
            sources: sources.collect(),
            sources_changed: found.sources_changed,
            partitions: partitions.collect(),
            partitions_changed: found.partitions_changed,
            files_added: found.added.into(),
            files_removed: found.removed.into(),
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RestoreRequest {
    /// The version to restore.
    sequence: u64,
}

/// The name of a table with versions.
fn versioned_table(tables: &Tables, request: &Request, pipeline: &Slug) -> Result<String, ApiError> {
    let catalog = tables.catalogs.catalog(pipeline)?;
    let table = table_param(request, &catalog, pipeline)?;
    if table.is_system() {
        let message = format!("`{REJECTED_ROWS_TABLE}` has no versions of its own; see those of each table");
        return Err(ApiError::new(ErrorCode::TableNotFound, message));
    }
    Ok(table.name.clone())
}

fn no_version(table: &str, sequence: &str) -> ApiError {
    ApiError::new(ErrorCode::VersionNotFound, format!("table `{table}` has no version `{}`", clipped(sequence)))
}

fn commits(tables: &Tables, request: &mut Request) -> Result<Response, ApiError> {
    let pipeline = slug_param(request, "pipeline")?;
    let limit = number_query(request, "limit", 1..=PAGE_MAX)?.unwrap_or(PAGE_DEFAULT) as usize;
    let offset = number_query(request, "offset", 0..=OFFSET_MAX)?.unwrap_or(0);
    let offset = usize::try_from(offset).unwrap_or(usize::MAX);
    let table = versioned_table(tables, request, &pipeline)?;
    let found = tables.manifests.present(&pipeline, &table, |found| {
        let Some(root) = found.value.as_ref() else { return Ok(Some(CommitList::default())) };
        let page = tables.manifests.read(&pipeline, root, |store, _| store.commits(root, offset, limit))?;
        let total = root.earlier().len() as u64 + 1;
        Ok(page.map(|roots| CommitList { commits: roots.into_iter().map(TableCommit::from).collect(), total }))
    })?;
    Ok(Response::json(200, &found.unwrap_or_default()))
}

fn changes(tables: &Tables, request: &mut Request) -> Result<Response, ApiError> {
    let pipeline = slug_param(request, "pipeline")?;
    let limit = number_query(request, "limit", 1..=CHANGES_MAX)?.unwrap_or(CHANGES_DEFAULT) as usize;
    let table = versioned_table(tables, request, &pipeline)?;
    let asked = request.param("sequence");
    let Some(as_of @ AsOf::Sequence(sequence)) = AsOf::parse(asked) else { return Err(no_version(&table, asked)) };
    let found = tables.manifests.present(&pipeline, &table, |found| {
        let Some(present) = found.value.as_ref() else { return Err(no_version(&table, asked)) };
        let read = tables.manifests.read(&pipeline, present, |store, _| {
            let root = match store.root_as_of(present, as_of)? {
                Ok(root) => root,
                Err(none) => return Ok(Err(version_not_found(&table, as_of, &none))),
            };
            let has_previous = present.earlier().any(|earlier| earlier + 1 == sequence);
            let previous = if has_previous { store.earlier_root(sequence - 1)? } else { None };
            let compared = previous.as_ref().map(|previous| compare(store, previous, &root, limit)).transpose()?;
            let (previous, changes) = (previous.map(|previous| previous.sequence), compared.map(Changes::from));
            Ok(Ok(CommitChanges { commit: root.into(), previous, changes }))
        })?;
        read.transpose()
    })?;
    found.map(|found| Response::json(200, &found)).ok_or_else(|| no_version(&table, asked))
}

/// Restores a version. Its files are in the store, so that this is one write.
fn restore_version(tables: &Tables, request: &mut Request) -> Result<Response, ApiError> {
    let pipeline = slug_param(request, "pipeline")?;
    let RestoreRequest { sequence } = request.json()?;
    let table = versioned_table(tables, request, &pipeline)?;
    let as_of = AsOf::Sequence(sequence);
    let committed = tables.locks.with_pipeline_locks(&[&pipeline], |locked| {
        let store = tables.manifests.table(&pipeline, &table);
        let present = match store.root().map_err(from_table)? {
            FoundRoot::Readable(present) => present,
            FoundRoot::Absent | FoundRoot::Unusable { .. } => return Err(no_version(&table, &sequence.to_string())),
        };
        let earlier = store.root_as_of(&present.root, as_of).map_err(from_table)?;
        let earlier = earlier.map_err(|none| version_not_found(&table, as_of, &none))?;
        if earlier.sequence == present.root.sequence {
            let message = format!("version {sequence} is already the current one of table `{table}`");
            return Err(ApiError::new(ErrorCode::InvalidRequest, message));
        }
        let now = tables.clock.now() - store.store.clock_skew().unwrap_or_default();
        restore(store, &present, earlier, locked[0].lease(), now).map_err(from_table)
    })?;
    tracing::info!(%pipeline, table, sequence, request_id = request.id().as_str(), "table version restored");
    Ok(Response::json(200, &TableCommit::from(committed)))
}
