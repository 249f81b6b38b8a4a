//! `…/tables/{table}/lineage`: the sources of each file of a table, and the files of each source.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::access::{AS_OF, as_of_query, clipped, number_query, optional_query, slug_param};
use super::endpoint::Endpoint;
use super::tables::Tables;
use super::tables::catalog::ConfigStatus;
use super::tables::table_param;
use crate::domain::layout::REJECTED_ROWS_TABLE;
use crate::domain::table_log::entries::{GroupEntry, RangeKey, SourceEntry, StoredFile};
use crate::domain::table_log::root::Root;
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::pipelines::tables::{Maps, TableResult, TableStore};

/// Default and largest page size, for sources and for files.
const PAGE_DEFAULT: u64 = 100;
const PAGE_MAX: u64 = 1_000;
/// Largest offset.
const OFFSET_MAX: u64 = 1 << 53;
/// Maximum number of names within one entry.
const NAMES_MAX: usize = 1_000;

pub(super) fn endpoints() -> Vec<Endpoint<Tables>> {
    let path = "/api/p/{pipeline}/tables/{table}/lineage";
    vec![
        Endpoint::get(path, "tables.lineage", "Shows which sources produced which files of a table", lineage)
            .query::<String>("source", "one source, by its key below the pipeline")
            .query::<String>("file", "one file, by its key below the pipeline")
            .query::<String>("partition", "one partition, as `day=2013-01-01`")
            .query::<String>(
                "extra_column",
                "only sources whose header has this column, which the table does not have; spelled as in the header",
            )
            .query::<u64>("limit", "page size, for sources and for files: at most 1000, 100 by default")
            .query::<u64>("offset", "sources, and files, to skip")
            .query::<String>("as_of", AS_OF)
            .response::<Lineage>(200, "the page")
            .errors(&[
                ErrorCode::PipelineNotFound,
                ErrorCode::InvalidConfig,
                ErrorCode::TableNotFound,
                ErrorCode::VersionNotFound,
                ErrorCode::TableDamaged,
                ErrorCode::Overloaded,
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
    /// Its CSV left the lake, and the table keeps its rows.
    archived: bool,
    /// Rows per partition: the first thousand.
    partitions: BTreeMap<String, u64>,
    partitions_total: u64,
    /// The file of its rejected rows, if any.
    rejects: Option<String>,
    /// Columns of its header that the table does not have.
    extra_columns: Vec<String>,
}

/// A file of the table.
#[derive(Debug, Serialize, JsonSchema)]
struct TableFile {
    key: String,
    partition: String,
    rows: u64,
    size: u64,
    sha256: String,
    /// Keys of its sources: the first thousand.
    sources: Vec<String>,
    sources_total: u64,
    /// The run that wrote it.
    job_id: String,
    /// The commit that added it; null for a file of rejected rows.
    commit: Option<u64>,
    /// It holds rejected rows.
    rejects: bool,
}

fn lineage(tables: &Tables, request: &mut Request) -> Result<Response, ApiError> {
    let pipeline = slug_param(request, "pipeline")?;
    let limit = number_query(request, "limit", 1..=PAGE_MAX)?.unwrap_or(PAGE_DEFAULT);
    let offset = number_query(request, "offset", 0..=OFFSET_MAX)?.unwrap_or(0);
    let source = optional_query(request, "source")?;
    let file = optional_query(request, "file")?;
    let partition = optional_query(request, "partition")?;
    let as_of = as_of_query(request)?;
    let extra_column = optional_query(request, "extra_column")?;
    if partition.is_some() && (source.is_some() || file.is_some()) {
        let message = "`partition` excludes `source` and `file`";
        return Err(ApiError::new(ErrorCode::InvalidRequest, message));
    }
    if extra_column.is_some() && (source.is_some() || file.is_some() || partition.is_some()) {
        let message = "`extra_column` excludes `source`, `file` and `partition`";
        return Err(ApiError::new(ErrorCode::InvalidRequest, message));
    }
    let catalog = tables.catalogs.catalog(&pipeline)?;
    let table = table_param(request, &catalog, &pipeline)?;
    if table.is_system() {
        let message = format!("`{REJECTED_ROWS_TABLE}` has no lineage of its own; see the lineage of each table");
        return Err(ApiError::new(ErrorCode::TableNotFound, message));
    }
    let page = Page { offset, limit: limit as usize };
    let of = LineageSubject { source, file, partition, extra_column };
    let read = tables.manifests.present(&pipeline, &table.name, |found| {
        let Some(present) = found.value.as_ref() else { return Ok(Some(None)) };
        let Some(earlier) = tables.manifests.earlier(&pipeline, present, as_of)? else { return Ok(None) };
        let root = earlier.as_ref().unwrap_or(present);
        tables.manifests.read(&pipeline, root, |store, maps| Manifest { store, root, maps }.lineage(of, page))
    })?;
    let lineage = match (read.flatten(), source.or(file).or(partition)) {
        (Some(lineage), _) => lineage,
        (None, Some(key)) => return Err(unknown(key)),
        (None, None) => Lineage::default(),
    };
    Ok(Response::json(200, &named(&table.name, &catalog.config, lineage)))
}

fn named(table: &str, config: &ConfigStatus, lineage: Lineage) -> Lineage {
    Lineage { table: table.to_owned(), config: config.unless_applied().cloned(), ..lineage }
}

#[derive(Clone, Copy)]
struct Page {
    offset: u64,
    limit: usize,
}

/// The subject of a lineage request: one source, one file, one partition, sources with a column, or the whole table.
#[derive(Clone, Copy)]
struct LineageSubject<'a> {
    source: Option<&'a str>,
    file: Option<&'a str>,
    partition: Option<&'a str>,
    extra_column: Option<&'a str>,
}

/// A table's manifest.
struct Manifest<'a> {
    store: &'a TableStore<'a>,
    root: &'a Root,
    maps: Maps,
}

impl Manifest<'_> {
    /// `None` if the manifest has no such source, file or partition.
    fn lineage(mut self, of: LineageSubject<'_>, page: Page) -> TableResult<Option<Lineage>> {
        match of {
            LineageSubject { source: Some(source), file, .. } => self.source_lineage(source, file, page),
            LineageSubject { source: None, file: Some(file), .. } => self.file_lineage(file, page),
            LineageSubject { source: None, file: None, partition: Some(partition), .. } => {
                self.partition_lineage(partition, page)
            }
            LineageSubject { extra_column: Some(name), .. } => self.extra_column_lineage(name, page).map(Some),
            LineageSubject { source: None, file: None, partition: None, .. } => self.all(page).map(Some),
        }
    }

    fn all(&mut self, page: Page) -> TableResult<Lineage> {
        let sources = self.maps.sources.page(page.offset, page.limit, &mut self.store.reader())?;
        let sources = sources.into_iter().map(|(key, entry)| self.source(key, entry)).collect::<TableResult<_>>()?;
        let totals = self.root.totals;
        // Files of rejected rows come first.
        let rejects = self.maps.rejects.page(page.offset, page.limit, &mut self.store.reader())?;
        let mut files: Vec<_> = rejects.iter().map(|(source, file)| rejects_file(source, file)).collect();
        let mut before = totals.rejects_files;
        for entry in self.maps.groups.clone().entries(&mut self.store.reader()) {
            if files.len() >= page.limit {
                break;
            }
            let (key, group) = entry?;
            for file in &group.files {
                if before >= page.offset && files.len() < page.limit {
                    files.push(self.data_file(&key, &group, file)?);
                }
                before += 1;
            }
        }
        let files_total = totals.files + totals.rejects_files;
        Ok(Lineage { sources, sources_total: totals.sources, files, files_total, ..Lineage::default() })
    }

    /// Without files: they may have rows of other sources.
    fn extra_column_lineage(&mut self, name: &str, page: Page) -> TableResult<Lineage> {
        let mut found = Vec::new();
        self.maps.sources.visit(&mut self.store.reader(), |key, entry| {
            if entry.extra_columns.iter().any(|extra| extra == name) {
                found.push(key.clone());
            }
            Ok(())
        })?;
        let sources_total = found.len() as u64;
        let sources = self.sources(paged(found, page))?;
        Ok(Lineage { sources, sources_total, ..Lineage::default() })
    }

    fn source_lineage(&mut self, source: &str, file: Option<&str>, page: Page) -> TableResult<Option<Lineage>> {
        let key = source.to_owned();
        let Some(entry) = self.maps.sources.get(&key, &mut self.store.reader())?.cloned() else { return Ok(None) };
        let rejects = self.maps.rejects.get(&key, &mut self.store.reader())?;
        let mut files: Vec<_> = rejects.iter().map(|rejects| rejects_file(source, rejects)).collect();
        for partition in entry.partitions.keys() {
            let at = RangeKey::new(partition, source);
            let group = self.maps.groups.floor(&at, &mut self.store.reader())?;
            let Some((key, group)) = group.map(|(key, group)| (key.clone(), group.clone())) else { continue };
            for file in &group.files {
                files.push(self.data_file(&key, &group, file)?);
            }
        }
        files.retain(|found| file.is_none_or(|file| found.key == file));
        if file.is_some() && files.is_empty() {
            return Ok(None);
        }
        let files_total = files.len() as u64;
        let files = paged(files, page);
        let sources = paged(vec![self.source(key, entry)?], page);
        Ok(Some(Lineage { sources, sources_total: 1, files, files_total, ..Lineage::default() }))
    }

    fn file_lineage(&mut self, file: &str, page: Page) -> TableResult<Option<Lineage>> {
        let mut found = None;
        let partition = partition_of(self.store.table, file);
        if let Some(partition) = partition {
            let mut at = RangeKey::new(partition, "");
            while let Some((key, group)) = self.maps.groups.after(&at, &mut self.store.reader())? {
                if key.partition != partition {
                    break;
                }
                at = key.clone();
                if let Some(file) = group.files.iter().find(|named| named.key == file) {
                    found = Some((key.clone(), group.clone(), file.clone()));
                    break;
                }
            }
        }
        let (names, shown) = match found {
            Some((key, group, file)) => (self.members(&key, &group)?, self.data_file(&key, &group, &file)?),
            None => {
                let mut rejects = None;
                self.maps.rejects.visit(&mut self.store.reader(), |source, named| {
                    if named.key == file {
                        rejects = Some((source.clone(), named.clone()));
                    }
                    Ok(())
                })?;
                let Some((source, named)) = rejects else { return Ok(None) };
                let shown = rejects_file(&source, &named);
                (vec![source], shown)
            }
        };
        let sources_total = names.len() as u64;
        let sources = self.sources(paged(names, page))?;
        let files = paged(vec![shown], page);
        Ok(Some(Lineage { sources, sources_total, files, files_total: 1, ..Lineage::default() }))
    }

    fn partition_lineage(&mut self, partition: &str, page: Page) -> TableResult<Option<Lineage>> {
        let (mut files, mut files_total, mut at) = (Vec::new(), 0, RangeKey::new(partition, ""));
        while let Some((key, group)) = self.maps.groups.after(&at, &mut self.store.reader())? {
            if key.partition != partition {
                break;
            }
            let (key, group) = (key.clone(), group.clone());
            for file in &group.files {
                if files_total >= page.offset && files.len() < page.limit {
                    files.push(self.data_file(&key, &group, file)?);
                }
                files_total += 1;
            }
            at = key;
        }
        if files_total == 0 {
            return Ok(None);
        }
        let (mut names, mut sources_total, mut at) = (Vec::new(), 0, RangeKey::new(partition, ""));
        while let Some((key, members)) = self.maps.members.after(&at, &mut self.store.reader())? {
            if key.partition != partition {
                break;
            }
            for member in members {
                if sources_total >= page.offset && names.len() < page.limit {
                    names.push(member.source.clone());
                }
                sources_total += 1;
            }
            at = key.clone();
        }
        let sources = self.sources(names)?;
        Ok(Some(Lineage { sources, sources_total, files, files_total, ..Lineage::default() }))
    }

    fn sources(&mut self, names: Vec<String>) -> TableResult<Vec<Source>> {
        let mut sources = Vec::with_capacity(names.len());
        for name in names {
            if let Some(entry) = self.maps.sources.get(&name, &mut self.store.reader())?.cloned() {
                sources.push(self.source(name, entry)?);
            }
        }
        Ok(sources)
    }

    /// The sources of a group, in order.
    fn members(&mut self, key: &RangeKey, group: &GroupEntry) -> TableResult<Vec<String>> {
        let mut names = Vec::new();
        for segment in &group.segments {
            let at = RangeKey::new(&key.partition, &segment.first);
            let members = self.maps.members.get(&at, &mut self.store.reader())?;
            names.extend(members.into_iter().flatten().map(|member| member.source.clone()));
        }
        Ok(names)
    }

    fn source(&mut self, key: String, entry: SourceEntry) -> TableResult<Source> {
        let rejects = self.maps.rejects.get(&key, &mut self.store.reader())?.map(|file| file.key.clone());
        let partitions_total = entry.partitions.len() as u64;
        Ok(Source {
            key,
            etag: entry.etag,
            size: entry.size,
            sha256: entry.sha256,
            read_at: entry.read_at,
            rows_read: entry.rows_read,
            rows_written: entry.rows_written,
            rows_rejected: entry.rows_rejected,
            rows_filtered: entry.rows_filtered,
            archived: entry.archived,
            partitions: entry.partitions.into_iter().take(NAMES_MAX).collect(),
            partitions_total,
            rejects,
            extra_columns: entry.extra_columns,
        })
    }

    fn data_file(&mut self, key: &RangeKey, group: &GroupEntry, file: &StoredFile) -> TableResult<TableFile> {
        let sources = self.members(key, group)?;
        Ok(TableFile {
            key: file.key.clone(),
            partition: key.partition.clone(),
            rows: file.rows,
            size: file.size,
            sha256: file.sha256.clone(),
            sources_total: sources.len() as u64,
            sources: sources.into_iter().take(NAMES_MAX).collect(),
            job_id: group.job_id.clone(),
            commit: Some(group.sequence),
            rejects: false,
        })
    }
}

fn rejects_file(source: &str, file: &StoredFile) -> TableFile {
    TableFile {
        key: file.key.clone(),
        partition: String::new(),
        rows: file.rows,
        size: file.size,
        sha256: file.sha256.clone(),
        sources: vec![source.to_owned()],
        sources_total: 1,
        job_id: String::new(),
        commit: None,
        rejects: true,
    }
}

fn paged<T>(all: Vec<T>, page: Page) -> Vec<T> {
    all.into_iter().skip(usize::try_from(page.offset).unwrap_or(usize::MAX)).take(page.limit).collect()
}

/// The partition of a file of `table` (`""` directly under the table); `None` for a file elsewhere.
fn partition_of<'a>(table: &str, key: &'a str) -> Option<&'a str> {
    let path = key.strip_prefix(table)?.strip_prefix('/')?;
    Some(path.rsplit_once('/').map_or("", |(partition, _)| partition))
}

fn unknown(key: &str) -> ApiError {
    let message = format!("`{}` is not a source, file or partition of the table's current version", clipped(key));
    ApiError::new(ErrorCode::ObjectNotFound, message)
}
