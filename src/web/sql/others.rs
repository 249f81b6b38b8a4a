//! Tables of other pipelines, which statements name as `<pipeline>.<table>`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::failure::{from_problem, no_such_table};
use super::types::{SqlProblem, TableShape};
use crate::domain::name::Slug;
use crate::http::{ApiError, ErrorCode};
use crate::ports::store::ETag;
use crate::web::snapshot::RequestedTable;
use crate::web::tables::catalog::{Catalog, CatalogTable, shape};
use crate::web::tables::catalogs::Catalogs;

/// Most other pipelines in the statements of a request.
const PIPELINES_MAX: usize = 20;

/// A table of another pipeline.
#[derive(Debug, Clone)]
pub struct OtherTable {
    pub pipeline: Slug,
    pub table: CatalogTable,
    /// The tag of its manifest.
    pub tag: Option<ETag>,
}

impl OtherTable {
    /// Its name in a child.
    pub fn name(&self) -> String {
        format!("{}.{}", self.pipeline, self.table.name)
    }

    pub fn wanted(&self) -> RequestedTable<'_> {
        RequestedTable { pipeline: &self.pipeline, table: &self.table }
    }

    /// Its shape in a child.
    pub fn shape(&self) -> TableShape {
        TableShape { name: self.name(), ..shape(&self.table) }
    }
}

/// The other pipelines of a request. The catalog of each is looked up once.
pub struct OtherPipelines<'a> {
    catalogs: &'a Catalogs,
    found: BTreeMap<Slug, Arc<Catalog>>,
}

impl<'a> OtherPipelines<'a> {
    pub fn new(catalogs: &'a Catalogs) -> Self {
        Self { catalogs, found: BTreeMap::new() }
    }

    /// Finds the tables of other pipelines among the tables that statements name.
    ///
    /// # Errors
    /// `invalid_sql` if one doesn't exist or there are too many pipelines; `s3_error`, `bucket_not_found`.
    pub fn tables(&mut self, named: &[String]) -> Result<Vec<OtherTable>, ApiError> {
        let names: BTreeSet<(&str, &str)> = named.iter().filter_map(|name| name.split_once('.')).collect();
        let pipelines: BTreeSet<&str> = names.iter().map(|(pipeline, _)| *pipeline).collect();
        if pipelines.len() > PIPELINES_MAX {
            let found = pipelines.len();
            return Err(refused(format!(
                "the query reads tables of {found} other pipelines; at most {PIPELINES_MAX} are allowed"
            )));
        }
        names.into_iter().map(|(pipeline, table)| self.table(pipeline, table)).collect()
    }

    fn table(&mut self, pipeline: &str, table: &str) -> Result<OtherTable, ApiError> {
        let unknown = || refused(format!("there is no pipeline `{pipeline}`"));
        let pipeline = Slug::parse(pipeline).map_err(|_| unknown())?;
        if !self.found.contains_key(&pipeline) {
            let catalog = match self.catalogs.catalog(&pipeline) {
                Err(error) if error.code() == ErrorCode::PipelineNotFound => return Err(unknown()),
                found => found?,
            };
            self.found.insert(pipeline.clone(), catalog);
        }
        let catalog = &self.found[&pipeline];
        match catalog.tables.iter().find(|one| one.name.eq_ignore_ascii_case(table)) {
            Some(found) => {
                let tag = catalog.tags.get(&found.name).cloned();
                Ok(OtherTable { pipeline, table: found.clone(), tag })
            }
            None => Err(refused(no_such_table(&format!("the pipeline `{pipeline}`"), table, &catalog.names()))),
        }
    }
}

fn refused(message: String) -> ApiError {
    from_problem(&SqlProblem { message, position: None })
}
