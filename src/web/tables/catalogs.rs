//! Loads catalogs: the tables that manifests describe, and those that the config adds with the next run.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::catalog::{AppliedState, Catalog, CatalogTable, ConfigStatus, TableState, rejected_rows};
use crate::domain::layout::config_key;
use crate::domain::limits::CONFIG_BYTES_MAX;
use crate::domain::name::Slug;
use crate::domain::pipeline::globs::SourceGlobs;
use crate::domain::pipeline::validate::parse as parse_config;
use crate::domain::pipeline::{ColumnSource, Mapping, WhenRemoved};
use crate::domain::problem::{Problem, ProblemKind};
use crate::domain::table_schema::{StoredSchema, TableColumn, columns_of, mapping_digest, variants_digest};
use crate::http::{ApiError, ErrorCode};
use crate::ports::store::ETag;
use crate::web::cache::parsed::Parsed;
use crate::web::failure::pipeline_not_found;
use crate::web::snapshot::manifest::Manifests;
use crate::web::stores::Objects;

/// Maximum number of cached catalogs.
const CACHED_MAX: usize = 500;

/// A config, as readers of tables and the lake need it.
#[derive(Debug)]
pub enum Declared {
    Valid {
        tables: Vec<DeclaredTable>,
        /// The globs of all tables; compiled on first use, `None` if they are too many.
        globs: OnceLock<Option<SourceGlobs>>,
    },
    Invalid(Vec<Problem>),
}

/// A table of the config.
#[derive(Debug)]
pub struct DeclaredTable {
    name: String,
    columns: Vec<TableColumn>,
    /// Headers that its columns are read from, in lower case.
    headers: BTreeSet<String>,
    /// Globs of its sources.
    files: Vec<String>,
    /// Digest of the mapping, to compare with a manifest's.
    mapping: String,
    variants: String,
    /// Whether it keeps the rows of CSVs that leave the lake.
    keeps_rows: bool,
}

impl DeclaredTable {
    /// Globs of its sources.
    pub fn globs(&self) -> &[String] {
        &self.files
    }

    /// Whether a column is read from this header.
    pub fn reads_header(&self, header: &str) -> bool {
        self.headers.contains(&header.to_lowercase())
    }

    /// Whether it keeps the rows of CSVs that leave the lake.
    pub fn keeps_rows(&self) -> bool {
        self.keeps_rows
    }
}

impl Declared {
    /// The table of this name.
    pub fn table(&self, name: &str) -> Option<&DeclaredTable> {
        let Self::Valid { tables, .. } = self else { return None };
        tables.iter().find(|table| table.name == name)
    }

    /// The tables that read a source, in order; `None` if unknown. `key`: relative to the pipeline's prefix.
    pub fn reading(&self, key: &str) -> Option<Vec<String>> {
        let Self::Valid { tables, .. } = self else { return None };
        let globs = self.globs()?;
        if key.is_empty() || key.ends_with('/') {
            return Some(Vec::new());
        }
        let found = globs.reading(key).0;
        Some(found.into_iter().filter_map(|at| tables.get(at)).map(|table| table.name.clone()).collect())
    }

    /// Whether a table leaves a source out on purpose. `key`: relative to the pipeline's prefix.
    pub fn leaves_out(&self, key: &str) -> bool {
        self.globs().is_some_and(|globs| globs.reading(key).1)
    }

    fn globs(&self) -> Option<&SourceGlobs> {
        let Self::Valid { tables, globs } = self else { return None };
        globs.get_or_init(|| SourceGlobs::compile(tables.iter().map(|table| &table.files)).ok()).as_ref()
    }
}

fn declared(mapping: &Mapping) -> DeclaredTable {
    DeclaredTable {
        name: mapping.table.as_str().to_owned(),
        columns: columns_of(mapping),
        headers: headers_of(mapping),
        files: mapping.files.clone(),
        mapping: mapping_digest(mapping),
        variants: variants_digest(mapping),
        keeps_rows: mapping.when_removed == WhenRemoved::KeepRows,
    }
}

fn headers_of(mapping: &Mapping) -> BTreeSet<String> {
    let columns = mapping.columns.iter().chain(mapping.variants.iter().flat_map(|variant| &variant.columns));
    let names = columns.flat_map(|column| match &column.source {
        ColumnSource::Header(names) => names.as_slice(),
        ColumnSource::Position(_) | ColumnSource::Path(_) | ColumnSource::Expr(_) => &[],
    });
    names.map(|name| name.to_lowercase()).collect()
}

/// Parses a config; a config with problems is also a value, not an error.
#[expect(clippy::unnecessary_wraps, reason = "a parser of `Parsed`")]
fn parse(bytes: &[u8]) -> Result<Declared, ApiError> {
    Ok(match parse_config(&String::from_utf8_lossy(bytes)) {
        Ok(pipeline) => {
            Declared::Valid { tables: pipeline.mappings.iter().map(declared).collect(), globs: OnceLock::new() }
        }
        Err(problems) => Declared::Invalid(problems),
    })
}

/// The value of a config that exceeds the size limit.
#[expect(clippy::unnecessary_wraps, reason = "a parser of `Parsed`")]
fn too_large(bytes_max: u64) -> Result<Declared, ApiError> {
    let problem = Problem::new(ProblemKind::Limit, "", format!("expected at most {bytes_max} bytes, found more"));
    Ok(Declared::Invalid(vec![problem]))
}

/// A stored table, from its manifest.
struct Stored {
    name: String,
    schema: StoredSchema,
}

impl Stored {
    /// Whether the files were written under this mapping, from the sources that it matches. A run with a prefix leaves
    /// globs unknown.
    fn was_written_under(&self, declared: &DeclaredTable) -> bool {
        let same_globs = self.schema.globs.as_ref().is_none_or(|globs| *globs == declared.files);
        let same_variants = self.schema.globs.is_none() || self.schema.variants == declared.variants;
        same_globs && same_variants && self.schema.mapping == declared.mapping
    }
}

/// Cached catalogs, with the state from which each was built.
#[derive(Default)]
struct CatalogCache(Mutex<HashMap<Slug, (String, Arc<Catalog>)>>);

impl CatalogCache {
    fn get(&self, pipeline: &Slug, state: &str) -> Option<Arc<Catalog>> {
        let cached = self.0.lock();
        cached.get(pipeline).filter(|(of, _)| of == state).map(|(_, catalog)| Arc::clone(catalog))
    }

    fn insert(&self, pipeline: &Slug, state: String, catalog: &Arc<Catalog>) {
        let mut cached = self.0.lock();
        if cached.len() >= CACHED_MAX {
            cached.clear();
        }
        cached.insert(pipeline.clone(), (state, Arc::clone(catalog)));
    }
}

/// Loads catalogs.
pub struct Catalogs {
    store: Objects,
    configs: Parsed<Declared>,
    cache: CatalogCache,
    manifests: Arc<Manifests>,
}

impl Catalogs {
    pub fn new(store: Objects, manifests: Arc<Manifests>) -> Self {
        let configs = Parsed::new(CONFIG_BYTES_MAX as u64, parse, too_large);
        Self { store, configs, cache: CatalogCache::default(), manifests }
    }

    /// The config of a pipeline; `None` if it has none.
    ///
    /// # Errors
    /// `s3_error`, `bucket_not_found`.
    pub fn declared(&self, pipeline: &Slug) -> Result<Option<Arc<Declared>>, ApiError> {
        Ok(self.configs.get(&self.store, &config_key(pipeline))?.map(|found| found.value))
    }

    /// The tables of a pipeline, even if its config is unusable.
    ///
    /// # Errors
    /// `pipeline_not_found`, `s3_error`, `bucket_not_found`.
    pub fn catalog(&self, pipeline: &Slug) -> Result<Arc<Catalog>, ApiError> {
        let config = self.configs.get(&self.store, &config_key(pipeline))?;
        let tags = self.manifests.tags(pipeline)?;
        if config.is_none() && tags.is_empty() && !self.store.exists(pipeline)? {
            return Err(pipeline_not_found(pipeline));
        }
        let config_tag = config.as_ref().map_or("", |found| found.etag.0.as_str());
        let state =
            tags.iter().fold(config_tag.to_owned(), |state, (table, tag)| format!("{state}\n{table} {}", tag.0));
        if let Some(catalog) = self.cache.get(pipeline, &state) {
            return Ok(catalog);
        }
        let (mut stored, mut same) = (Vec::new(), true);
        for (table, tag) in &tags {
            match self.manifests.get(pipeline, table) {
                Ok(Some(found)) => {
                    same &= found.etag == *tag;
                    let schema = found.value.as_ref().as_ref().map(|root| root.schema.clone());
                    stored.extend(schema.map(|schema| Stored { name: table.clone(), schema }));
                }
                Ok(None) => same = false,
                // Written by a newer version: reported when the table is read.
                Err(error) if error.code() == ErrorCode::InvalidConfig => {}
                Err(error) => return Err(error),
            }
        }
        let config = config.as_ref().map(|found| &*found.value);
        let catalog = Arc::new(Self::catalog_of(config, stored, tags));
        // A manifest that changed since it was listed belongs to another state.
        if same {
            self.cache.insert(pipeline, state, &catalog);
        }
        Ok(catalog)
    }

    fn catalog_of(config: Option<&Declared>, stored: Vec<Stored>, tags: BTreeMap<String, ETag>) -> Catalog {
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
                    columns: stored.schema.columns.clone(),
                    state: if stored.was_written_under(declared) { TableState::Applied } else { TableState::Changed },
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
            let columns = stored.schema.columns.clone();
            tables.push(CatalogTable { name: stored.name.clone(), columns, state: others });
        }
        tables.push(rejected_rows());
        let problems = match config {
            Some(Declared::Invalid(problems)) => problems.clone(),
            Some(Declared::Valid { .. }) | None => Vec::new(),
        };
        Catalog { tables, tags, config: ConfigStatus { state, problems } }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn system_table_has_its_own_columns() {
        let table = rejected_rows();
        assert!(table.is_system() && table.columns.len() == 13 && table.columns[0].partition);
    }

    #[test]
    fn invalid_config_keeps_its_problems() {
        let Declared::Invalid(problems) = parse(b"{}").unwrap() else { panic!("`{{}}` is not a config") };
        assert!(!problems.is_empty());
        assert_eq!(parse(b"{}").unwrap().reading("in/a.csv"), None);
    }

    #[test]
    fn source_is_read_by_the_tables_whose_globs_match() {
        let table = |name: &str, glob: &str| json!({ "table": name, "files": [glob], "columns": [{ "name": "a", "type": "string" }] });
        let config = json!({ "version": 1, "mappings": [table("t", "in/*.csv"), table("u", "**/a.csv")] });
        let declared = parse(config.to_string().as_bytes()).unwrap();
        assert_eq!(declared.reading("in/a.csv").unwrap(), ["t", "u"]);
        assert_eq!(declared.reading("in/b.csv").unwrap(), ["t"]);
        assert_eq!(declared.reading("in/").unwrap(), [""; 0]);
        let config = json!({ "version": 1, "mappings": [table("t", "*.csv"), { "table": "u", "files": ["*.csv", "!a.csv"],
            "columns": [{ "name": "a", "type": "string" }] }] });
        let declared = parse(config.to_string().as_bytes()).unwrap();
        assert_eq!((declared.reading("a.csv").unwrap(), declared.leaves_out("a.csv")), (vec!["t".to_owned()], true));
        assert!(!declared.leaves_out("b.csv"));
    }
}
