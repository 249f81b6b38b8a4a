//! The tables that a pipeline has: those that its manifests describe, and those that its config adds with the next run.
//!
//! Invariant: the columns of a stored table are those of its files, whatever the config says by now.

use parking_lot::Mutex;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

use globset::{GlobSet, GlobSetBuilder};
use schemars::JsonSchema;
use serde::Serialize;

use crate::domain::layout::{REJECTED_ROWS_TABLE, config_key};
use crate::domain::limits::CONFIG_BYTES_MAX;
use crate::domain::manifest::{FileEntry, Manifest};
use crate::domain::name::Slug;
use crate::domain::pipeline::types::DataType;
use crate::domain::pipeline::validate::parse as parse_config;
use crate::domain::pipeline::{Mapping, Pipeline, compile_glob};
use crate::domain::plan::layout;
use crate::domain::problem::{Problem, ProblemKind};
use crate::domain::table_schema::{TableColumn, columns_of, mapping_digest};
use crate::http::{ApiError, ErrorCode};
use crate::sql::sandbox::RelationColumn;
use crate::web::Web;
use crate::web::snapshot::columns::with_partitions;
use crate::web::snapshot::relation_columns;
use crate::web::sql::{ShapeColumn, TableShape};

/// The columns of `_rejected_rows`, with whether they may be null. The first is in the paths of the files.
const REJECTED_COLUMNS: &[(&str, DataType, bool)] = &[
    ("table", DataType::String, false),
    ("source", DataType::String, false),
    ("source_sha256", DataType::String, false),
    ("line", DataType::UInt64, false),
    ("byte_offset", DataType::UInt64, false),
    ("column", DataType::String, true),
    ("value", DataType::String, true),
    ("reason", DataType::String, false),
    ("message", DataType::String, false),
    ("raw", DataType::String, false),
    ("job_id", DataType::String, false),
    ("raw_hex", DataType::String, true),
    ("byte_length", DataType::UInt64, true),
];
/// Catalogs that are kept, one a pipeline.
const KEPT_MAX: usize = 500;

/// The tables of a pipeline: those of the config in its order, then those that the config no longer has, then
/// `_rejected_rows`.
#[derive(Debug)]
pub struct Catalog {
    pub tables: Vec<CatalogTable>,
    pub config: ConfigStatus,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogTable {
    pub name: String,
    pub columns: Vec<TableColumn>,
    pub state: TableState,
}

/// How a table's files relate to the config.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TableState {
    /// They were written under the config as it is.
    Applied,
    /// They were written under an earlier config; the next run applies the present one.
    Changed,
    /// There are none yet; the columns are those of the config.
    New,
    /// The config no longer has the table; a clean run deletes it.
    Removed,
    /// The config is invalid or missing.
    Unknown,
}

/// How the config relates to the stored tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AppliedState {
    /// The stored tables were written under it.
    Applied,
    /// At least one table was written under an earlier one, or was not there yet; the next run applies it.
    Changed,
    /// No table was written yet.
    NotRun,
    /// It has problems; runs fail until they are fixed.
    Invalid,
    /// There is no `pipeline.json`.
    Missing,
}

/// The config beside tables that are served from their manifests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ConfigStatus {
    state: AppliedState,
    /// Of an invalid config.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    problems: Vec<Problem>,
}

impl ConfigStatus {
    /// The status, if there is anything to say beside rows: all but `applied` and `not_run`.
    pub fn notable(&self) -> Option<&Self> {
        match self.state {
            AppliedState::Applied | AppliedState::NotRun => None,
            AppliedState::Changed | AppliedState::Invalid | AppliedState::Missing => Some(self),
        }
    }
}

impl Catalog {
    /// Names compare as in DuckDB, without regard to case.
    pub fn table(&self, name: &str) -> Option<&CatalogTable> {
        self.tables.iter().find(|table| table.name.eq_ignore_ascii_case(name))
    }

    pub fn names(&self) -> Vec<&str> {
        self.tables.iter().map(|table| table.name.as_str()).collect()
    }

    pub fn shapes(&self) -> Vec<TableShape> {
        shapes(&self.tables)
    }
}

impl CatalogTable {
    pub fn is_system(&self) -> bool {
        self.name == REJECTED_ROWS_TABLE
    }
}

fn shapes(tables: &[CatalogTable]) -> Vec<TableShape> {
    let column = |c: &TableColumn| ShapeColumn { name: c.name.clone(), ty: c.ty, nullable: c.nullable };
    let shape = |table: &CatalogTable| TableShape {
        name: table.name.clone(),
        columns: table.columns.iter().map(column).collect(),
    };
    tables.iter().map(shape).collect()
}

/// The shapes of the tables that a config makes, `_rejected_rows` included.
pub fn shapes_of(pipeline: &Pipeline) -> Vec<TableShape> {
    let new = |mapping: &Mapping| CatalogTable {
        name: mapping.table.as_str().to_owned(),
        columns: columns_of(mapping),
        state: TableState::New,
    };
    let tables: Vec<CatalogTable> = pipeline.mappings.iter().map(new).chain([rejected_rows()]).collect();
    shapes(&tables)
}

fn rejected_rows() -> CatalogTable {
    let columns = REJECTED_COLUMNS.iter().enumerate().map(|(at, (name, ty, nullable))| TableColumn {
        name: (*name).to_owned(),
        ty: *ty,
        nullable: *nullable,
        partition: at == 0,
    });
    CatalogTable { name: REJECTED_ROWS_TABLE.to_owned(), columns: columns.collect(), state: TableState::Applied }
}

/// A config as far as readers of tables and of the lake need it.
#[derive(Debug)]
pub enum Declared {
    Valid {
        tables: Vec<DeclaredTable>,
        /// Those of all tables, with the table of each glob; compiled on first use, `None` if they are too many.
        globs: OnceLock<Option<(GlobSet, Vec<usize>)>>,
    },
    Invalid(Vec<Problem>),
}

/// A table of the config.
#[derive(Debug)]
pub struct DeclaredTable {
    name: String,
    columns: Vec<TableColumn>,
    /// Globs of its sources.
    files: Vec<String>,
    /// Digests of the mapping, to compare with those of a manifest.
    mapping: String,
    layout: String,
}

impl Declared {
    /// The tables that read a source, in their order; `None` if that is not known. `key`: relative to the pipeline's
    /// prefix.
    pub fn reading(&self, key: &str) -> Option<Vec<String>> {
        let Self::Valid { tables, globs } = self else { return None };
        let (globs, of) = globs.get_or_init(|| compile(tables)).as_ref()?;
        if key.is_empty() || key.ends_with('/') {
            return Some(Vec::new());
        }
        let found: BTreeSet<usize> = globs.matches(key).into_iter().filter_map(|glob| of.get(glob).copied()).collect();
        Some(found.into_iter().filter_map(|at| tables.get(at)).map(|table| table.name.clone()).collect())
    }
}

/// The globs of all tables, with the table that each is of.
fn compile(tables: &[DeclaredTable]) -> Option<(GlobSet, Vec<usize>)> {
    let (mut set, mut of) = (GlobSetBuilder::new(), Vec::new());
    for (at, table) in tables.iter().enumerate() {
        for glob in &table.files {
            set.add(compile_glob(glob).ok()?);
            of.push(at);
        }
    }
    Some((set.build().ok()?, of))
}

fn declared(mapping: &Mapping) -> DeclaredTable {
    DeclaredTable {
        name: mapping.table.as_str().to_owned(),
        columns: columns_of(mapping),
        files: mapping.files.clone(),
        mapping: mapping_digest(mapping),
        layout: layout(mapping),
    }
}

/// Largest config that is read, in bytes.
pub const CONFIG_READ_MAX: u64 = CONFIG_BYTES_MAX as u64;

/// Parses a config. One with problems is a value, too.
///
/// # Errors
/// None.
pub fn parse(bytes: &[u8]) -> Result<Declared, ApiError> {
    Ok(match parse_config(&String::from_utf8_lossy(bytes)) {
        Ok(pipeline) => {
            Declared::Valid { tables: pipeline.mappings.iter().map(declared).collect(), globs: OnceLock::new() }
        }
        Err(problems) => Declared::Invalid(problems),
    })
}

/// A config that is larger than any may be.
///
/// # Errors
/// None.
pub fn larger(bytes_max: u64) -> Result<Declared, ApiError> {
    let problem = Problem::new(ProblemKind::Limit, "", format!("expected at most {bytes_max} bytes, found more"));
    Ok(Declared::Invalid(vec![problem]))
}

/// A stored table, as its manifest describes it.
struct Stored {
    name: String,
    /// `None`: not known without reading a file, or the config; see [`Stored::columns`].
    columns: Option<Vec<TableColumn>>,
    mapping: Option<String>,
    globs: Option<Vec<String>>,
    layout: String,
    first_file: Option<FileEntry>,
}

impl Stored {
    fn of(name: &str, manifest: &Manifest) -> Self {
        let schema = manifest.schema.as_ref();
        let mut files = manifest.partitions.values().flat_map(|partition| &partition.files);
        Self {
            name: name.to_owned(),
            columns: schema.map(|schema| schema.columns.clone()),
            mapping: schema.map(|schema| schema.mapping.clone()),
            globs: schema.and_then(|schema| schema.globs.clone()),
            layout: manifest.layout.clone(),
            first_file: files.next().cloned(),
        }
    }

    /// Whether the files were written under this mapping, of the sources that it takes. Earlier manifests don't tell of
    /// globs, those of 0.1 only of names, types and partitions.
    fn is_of(&self, declared: &DeclaredTable) -> bool {
        let same_globs = self.globs.as_ref().is_none_or(|globs| *globs == declared.files);
        same_globs
            && self.mapping.as_ref().map_or(self.layout == declared.layout, |mapping| *mapping == declared.mapping)
    }
}

/// Catalogs, each with what it was made of.
#[derive(Default)]
pub(in crate::web) struct KeptCatalogs(Mutex<HashMap<Slug, (String, Arc<Catalog>)>>);

impl KeptCatalogs {
    fn get(&self, pipeline: &Slug, state: &str) -> Option<Arc<Catalog>> {
        let kept = self.0.lock();
        kept.get(pipeline).filter(|(of, _)| of == state).map(|(_, catalog)| Arc::clone(catalog))
    }

    fn keep(&self, pipeline: &Slug, state: String, catalog: &Arc<Catalog>) {
        let mut kept = self.0.lock();
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        kept.insert(pipeline.clone(), (state, Arc::clone(catalog)));
    }
}

impl Web {
    /// The config of a pipeline; `None` if it has none.
    ///
    /// # Errors
    /// `s3_error`, `bucket_not_found`.
    pub fn declared(&self, pipeline: &Slug) -> Result<Option<Arc<Declared>>, ApiError> {
        Ok(self.configs.get(self, &config_key(pipeline))?.map(|found| found.value))
    }

    /// The tables of a pipeline, whether or not its config can be used.
    ///
    /// # Errors
    /// `pipeline_not_found`, `s3_error`, `bucket_not_found`.
    pub fn catalog(&self, pipeline: &Slug) -> Result<Arc<Catalog>, ApiError> {
        let config = self.configs.get(self, &config_key(pipeline))?;
        let tags = self.manifest_tags(pipeline)?;
        if config.is_none() && tags.is_empty() && !self.exists(pipeline)? {
            return Err(ApiError::new(ErrorCode::PipelineNotFound, format!("there is no pipeline `{pipeline}`")));
        }
        let config_tag = config.as_ref().map_or("", |found| found.etag.0.as_str());
        let state =
            tags.iter().fold(config_tag.to_owned(), |state, (table, tag)| format!("{state}\n{table} {}", tag.0));
        if let Some(catalog) = self.catalogs.get(pipeline, &state) {
            return Ok(catalog);
        }
        let (mut stored, mut same) = (Vec::new(), true);
        for (table, tag) in &tags {
            match self.manifest(pipeline, table) {
                Ok(Some(found)) => {
                    same &= found.etag == *tag;
                    stored.extend(found.value.as_ref().as_ref().map(|known| Stored::of(table, &known.manifest)));
                }
                Ok(None) => same = false,
                // Of a newer version: whoever names the table is told so when its files are looked for.
                Err(error) if error.code() == ErrorCode::InvalidConfig => {}
                Err(error) => return Err(error),
            }
        }
        let catalog = Arc::new(self.catalog_of(pipeline, config.as_ref().map(|found| &*found.value), stored)?);
        // One that changed since it was listed belongs to another state.
        if same {
            self.catalogs.keep(pipeline, state, &catalog);
        }
        Ok(catalog)
    }

    fn catalog_of(&self, pipeline: &Slug, config: Option<&Declared>, stored: Vec<Stored>) -> Result<Catalog, ApiError> {
        let has_stored = !stored.is_empty();
        let (declared, others) = match config {
            Some(Declared::Valid { tables, .. }) => (tables.as_slice(), TableState::Removed),
            Some(Declared::Invalid(_)) | None => (&[][..], TableState::Unknown),
        };
        let mut tables = Vec::new();
        for declared in declared {
            tables.push(match stored.iter().find(|stored| stored.name == declared.name) {
                None => CatalogTable {
                    name: declared.name.clone(),
                    columns: declared.columns.clone(),
                    state: TableState::New,
                },
                Some(stored) => CatalogTable {
                    name: stored.name.clone(),
                    columns: self.stored_columns(pipeline, stored, Some(declared))?,
                    state: if stored.is_of(declared) { TableState::Applied } else { TableState::Changed },
                },
            });
        }
        let state = match config {
            Some(Declared::Invalid(_)) => AppliedState::Invalid,
            None => AppliedState::Missing,
            Some(Declared::Valid { .. }) if !has_stored => AppliedState::NotRun,
            Some(Declared::Valid { .. }) if tables.iter().any(|table| table.state != TableState::Applied) => {
                AppliedState::Changed
            }
            Some(Declared::Valid { .. }) => AppliedState::Applied,
        };
        for stored in stored.iter().filter(|stored| !declared.iter().any(|declared| declared.name == stored.name)) {
            let columns = self.stored_columns(pipeline, stored, None)?;
            // A manifest of 0.1 without files: nothing tells what it had.
            if columns.is_empty() {
                continue;
            }
            tables.push(CatalogTable { name: stored.name.clone(), columns, state: others });
        }
        tables.push(rejected_rows());
        let problems = match config {
            Some(Declared::Invalid(problems)) => problems.clone(),
            Some(Declared::Valid { .. }) | None => Vec::new(),
        };
        Ok(Catalog { tables, config: ConfigStatus { state, problems } })
    }

    /// The columns of a stored table. A manifest of 0.1 doesn't have them: until the next run adds them they are those
    /// of the config, if that has the same layout, and else those of the first file.
    fn stored_columns(
        &self,
        pipeline: &Slug,
        stored: &Stored,
        declared: Option<&DeclaredTable>,
    ) -> Result<Vec<TableColumn>, ApiError> {
        if let Some(columns) = &stored.columns {
            return Ok(columns.clone());
        }
        let declared_columns = declared.map(|declared| declared.columns.as_slice()).unwrap_or_default();
        let other = declared.is_none_or(|declared| declared.layout != stored.layout);
        let Some(file) = stored.first_file.as_ref().filter(|_| other) else { return Ok(declared_columns.to_vec()) };
        let Some(found) = self.file_columns(pipeline, file)? else { return Ok(declared_columns.to_vec()) };
        let found = with_partitions(found, &file.key, &relation_columns(declared_columns));
        Ok(found.into_iter().map(table_column).collect())
    }
}

/// A column of a file; of a type that no config has it reads as text.
fn table_column(column: RelationColumn) -> TableColumn {
    let RelationColumn { name, ty, nullable, partition } = column;
    TableColumn { name, ty: DataType::parse(&ty).unwrap_or(DataType::String), nullable, partition }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_system_table_has_its_own_columns() {
        let table = rejected_rows();
        assert!(table.is_system() && table.columns.len() == REJECTED_COLUMNS.len() && table.columns[0].partition);
    }

    #[test]
    fn an_invalid_config_is_kept_with_its_problems() {
        let Declared::Invalid(problems) = parse(b"{}").unwrap() else { panic!("`{{}}` is no config") };
        assert!(!problems.is_empty());
        assert_eq!(parse(b"{}").unwrap().reading("in/a.csv"), None);
    }

    #[test]
    fn a_source_is_read_by_the_tables_whose_globs_match() {
        let table = |name: &str, glob: &str| json!({ "table": name, "files": [glob], "columns": [{ "name": "a", "type": "string" }] });
        let config = json!({ "version": 1, "mappings": [table("t", "in/*.csv"), table("u", "**/a.csv")] });
        let declared = parse(config.to_string().as_bytes()).unwrap();
        assert_eq!(declared.reading("in/a.csv").unwrap(), ["t", "u"]);
        assert_eq!(declared.reading("in/b.csv").unwrap(), ["t"]);
        assert_eq!(declared.reading("in/").unwrap(), [""; 0]);
    }
}
