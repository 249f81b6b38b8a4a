//! A REST catalog of Iceberg tables.

use serde_json::Value;

use crate::domain::iceberg::CatalogMetadata;
use crate::domain::name::Slug;

/// A table in the catalog: its namespace is the pipeline's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CatalogName<'a> {
    pub slug: &'a Slug,
    pub table: &'a str,
}

/// Why a request failed. The messages hold no secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CatalogError {
    /// The table changed since it was loaded or exists already, or the outcome of the request is unknown.
    #[error("{0}")]
    Uncertain(String),
    /// The catalog doesn't support the request.
    #[error("the catalog doesn't support the request: {0}")]
    Unsupported(String),
    #[error("{0}")]
    Failed(String),
}

/// A REST catalog. Each call ends within two minutes.
pub trait IcebergCatalog: Send + Sync {
    /// Its URL, warehouse and parent namespace, which identify it; no secrets.
    fn name(&self) -> &str;

    /// `None` if there is no such table.
    ///
    /// # Errors
    /// If the catalog can't be reached, or its response can't be read.
    fn load(&self, table: CatalogName<'_>) -> Result<Option<CatalogMetadata>, CatalogError>;

    /// Creates the table from a metadata file, and its namespace if it doesn't exist. `metadata`: the file's address.
    ///
    /// # Errors
    /// [`CatalogError::Uncertain`] if the table exists, [`CatalogError::Unsupported`] if the catalog can't register tables.
    fn register(&self, table: CatalogName<'_>, metadata: &str) -> Result<(), CatalogError>;

    /// Commits requirements and updates of a table.
    ///
    /// # Errors
    /// [`CatalogError::Uncertain`] if a requirement isn't met.
    fn commit(&self, table: CatalogName<'_>, commit: &Value) -> Result<(), CatalogError>;

    /// Removes the table from the catalog, if it is there, and leaves its files.
    ///
    /// # Errors
    /// If the catalog can't be reached, or refuses it.
    fn remove(&self, table: CatalogName<'_>) -> Result<(), CatalogError>;

    /// Whether the catalog can be reached with the present credentials.
    ///
    /// # Errors
    /// Why it can't.
    fn probe(&self) -> Result<(), CatalogError>;
}
