//! `…/tables/{table}/lineage`: the sources of each file of a table, and the files of each source.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use super::access::{clipped, number_query, optional_query, slug_param};
use super::endpoint::Endpoint;
use super::tables::Tables;
use super::tables::catalog::ConfigStatus;
use super::tables::table_param;
use crate::domain::layout::REJECTED_ROWS_TABLE;
use crate::domain::manifest::{FileEntry, Manifest, PartitionEntry, SourceEntry};
use crate::http::{ApiError, ErrorCode, Request, Response};

/// Default and largest page size, for sources and for files.
const PAGE_DEFAULT: u64 = 100;
const PAGE_MAX: u64 = 1_000;
/// Largest offset.
const OFFSET_MAX: u64 = 1 << 53;
/// Most names within one entry.
const NAMES_MAX: usize = 1_000;

pub(super) fn endpoints() -> Vec<Endpoint<Tables>> {
    let path = "/api/p/{pipeline}/tables/{table}/lineage";
    vec![
        Endpoint::get(path, "tables.lineage", "Shows which sources produced which files of a table", lineage)
            .query::<String>("source", "one source, by its key below the pipeline")
            .query::<String>("file", "one file, by its key below the pipeline")
            .query::<u64>("limit", "page size, for sources and for files: at most 1000, 100 by default")
            .query::<u64>("offset", "sources, and files, to skip")
            .answers::<Lineage>(200, "the page")
            .errors(&[
                ErrorCode::PipelineNotFound,
                ErrorCode::InvalidConfig,
                ErrorCode::TableNotFound,
                ErrorCode::ObjectNotFound,
                ErrorCode::S3Error,
                ErrorCode::BucketNotFound,
            ]),
    ]
}

/// A table's lineage in both directions. Keys are relative to the pipeline's prefix.
#[derive(Debug, Default, Serialize, JsonSchema)]
struct Lineage {
    table: String,
    /// A run is publishing the table, or died while publishing.
    publishing: bool,
    sources: Vec<Source>,
    sources_total: u64,
    files: Vec<TableFile>,
    files_total: u64,
    /// Present unless the tables were written under the current config.
    #[serde(skip_serializing_if = "Option::is_none")]
    config: Option<ConfigStatus>,
}

/// A source, as last read.
#[derive(Debug, Serialize, JsonSchema)]
struct Source {
    key: String,
    etag: Option<String>,
    size: u64,
    sha256: String,
    /// RFC 3339, by the store's clock.
    read_at: String,
    rows_read: u64,
    rows_written: u64,
    rows_rejected: u64,
    rows_filtered: u64,
    /// Rows per partition: the first thousand.
    partitions: BTreeMap<String, u64>,
    partitions_total: u64,
    /// The file of its rejected rows, if any.
    rejects: Option<String>,
}

/// A file of the table.
#[derive(Debug, Serialize, JsonSchema)]
struct TableFile {
    key: String,
    partition: String,
    rows: u64,
    size: u64,
    etag: Option<String>,
    sha256: String,
    /// Keys of its sources: the first thousand.
    sources: Vec<String>,
    sources_total: u64,
    /// The run that wrote it.
    job_id: String,
    fence: u64,
    /// All its sources were removed from the lake; it is kept until a clean run.
    retained: bool,
    /// It holds rejected rows.
    rejects: bool,
}

/// A file with its partition.
struct Entry<'a> {
    partition: &'a str,
    file: &'a FileEntry,
    /// `None`: a file of rejects.
    of: Option<&'a PartitionEntry>,
}

fn lineage(tables: &Tables, request: &mut Request) -> Result<Response, ApiError> {
    let pipeline = slug_param(request, "pipeline")?;
    let limit = number_query(request, "limit", 1..=PAGE_MAX)?.unwrap_or(PAGE_DEFAULT);
    let offset = number_query(request, "offset", 0..=OFFSET_MAX)?.unwrap_or(0);
    let source = optional_query(request, "source")?;
    let file = optional_query(request, "file")?;
    let catalog = tables.catalogs.catalog(&pipeline)?;
    let table = table_param(request, &catalog, &pipeline)?;
    if table.is_system() {
        let message = format!("`{REJECTED_ROWS_TABLE}` has no lineage of its own; see the lineage of each table");
        return Err(ApiError::new(ErrorCode::TableNotFound, message));
    }
    let found = tables.manifests.get(&pipeline, &table.name)?;
    let known = found.as_ref().and_then(|found| found.value.as_ref().as_ref());
    let narrowed = source.or(file);
    let config = catalog.config.notable().cloned();
    let Some(known) = known else {
        return match narrowed {
            Some(key) => Err(unknown(key)),
            None => Ok(Response::json(200, &Lineage { table: table.name.clone(), config, ..Lineage::default() })),
        };
    };
    let manifest = &known.manifest;
    let (sources, files) = narrow(manifest, source, file)?;
    let page = |total: usize| {
        let start = usize::try_from(offset).map_or(total, |offset| offset.min(total));
        start..usize::try_from(limit).map_or(total, |limit| start.saturating_add(limit).min(total))
    };
    let lineage = Lineage {
        table: table.name.clone(),
        publishing: manifest.publishing.is_some(),
        sources: sources[page(sources.len())].iter().map(|(key, entry)| source_of(manifest, key, entry)).collect(),
        sources_total: sources.len() as u64,
        files: files[page(files.len())].iter().map(file_of).collect(),
        files_total: files.len() as u64,
        config,
    };
    Ok(Response::json(200, &lineage))
}

type Narrowed<'a> = (Vec<(&'a str, &'a SourceEntry)>, Vec<Entry<'a>>);

/// The sources and files that match the request.
fn narrow<'a>(manifest: &'a Manifest, source: Option<&str>, file: Option<&str>) -> Result<Narrowed<'a>, ApiError> {
    if let Some(source) = source
        && !manifest.sources.contains_key(source)
        && !manifest.files().any(|file| file.sources.iter().any(|own| own == source))
    {
        return Err(unknown(source));
    }
    let data = manifest
        .partitions
        .iter()
        .flat_map(|(partition, entry)| entry.files.iter().map(move |file| Entry { partition, file, of: Some(entry) }));
    let rejects = manifest.rejects.values().map(|file| Entry { partition: "", file, of: None });
    let mut files: Vec<Entry<'a>> = data
        .chain(rejects)
        .filter(|entry| source.is_none_or(|source| entry.file.sources.iter().any(|own| own == source)))
        .filter(|entry| file.is_none_or(|file| entry.file.key == file))
        .collect();
    files.sort_by(|a, b| a.file.key.cmp(&b.file.key));
    if let Some(file) = file
        && files.is_empty()
    {
        return Err(unknown(file));
    }
    let contributors: BTreeSet<&str> = match file {
        Some(_) => files.iter().flat_map(|entry| &entry.file.sources).map(String::as_str).collect(),
        None => BTreeSet::new(),
    };
    let sources = manifest
        .sources
        .iter()
        .map(|(key, entry)| (key.as_str(), entry))
        .filter(|(key, _)| source.is_none_or(|source| *key == source))
        .filter(|(key, _)| file.is_none() || contributors.contains(key))
        .collect();
    Ok((sources, files))
}

fn source_of(manifest: &Manifest, key: &str, entry: &SourceEntry) -> Source {
    Source {
        key: key.to_owned(),
        etag: entry.etag.clone(),
        size: entry.size,
        sha256: entry.sha256.clone(),
        read_at: entry.read_at.clone(),
        rows_read: entry.rows_read,
        rows_written: entry.rows_written,
        rows_rejected: entry.rows_rejected,
        rows_filtered: entry.rows_filtered,
        partitions: entry.partitions.iter().take(NAMES_MAX).map(|(name, rows)| (name.clone(), *rows)).collect(),
        partitions_total: entry.partitions.len() as u64,
        rejects: manifest.rejects.get(key).map(|file| file.key.clone()),
    }
}

fn file_of(entry: &Entry<'_>) -> TableFile {
    let Entry { partition, file, of } = entry;
    TableFile {
        key: file.key.clone(),
        partition: (*partition).to_owned(),
        rows: file.rows,
        size: file.size,
        etag: file.etag.clone(),
        sha256: file.sha256.clone(),
        sources: file.sources.iter().take(NAMES_MAX).cloned().collect(),
        sources_total: file.sources.len() as u64,
        job_id: of.map(|entry| entry.job_id.clone()).unwrap_or_default(),
        fence: of.map(|entry| entry.fence).unwrap_or_default(),
        retained: of.is_some_and(|entry| entry.retained),
        rejects: of.is_none(),
    }
}

fn unknown(key: &str) -> ApiError {
    let message = format!("`{}` is neither a source nor a file of the table's current version", clipped(key));
    ApiError::new(ErrorCode::ObjectNotFound, message)
}
