//! Commits a table's Iceberg snapshots to a REST catalog.
//!
//! The metadata beside the table is written first, and is complete without the catalog. Readers of the catalog may be
//! behind: what their snapshot needs is deleted only once the catalog has a later one, see [`super::recover`].

use std::time::Duration;

use super::{TableError, TableResult, TableStore, tables};
use crate::domain::iceberg::IcebergState;
use crate::domain::layout::{ICEBERG_FOLDER, iceberg_metadata_name};
use crate::domain::name::Slug;
use crate::domain::table_log::root::{IcebergTable, Root};
use crate::ports::iceberg_catalog::{CatalogError, CatalogName};
use crate::ports::{IcebergCatalog, ObjectStore};

/// Pauses before each read of the catalog's table: a commit may lose a race against the catalog's own maintenance, and
/// a recreated table is removed before it is registered.
const RETRY_PAUSES: [Duration; 4] =
    [Duration::ZERO, Duration::from_millis(50), Duration::from_millis(500), Duration::from_secs(2)];

/// Brings the table in the catalog up to the current snapshot of `root`. Does nothing if it is.
///
/// # Errors
/// [`TableError::Catalog`].
pub(super) fn publish(
    table: &TableStore<'_>,
    root: &Root,
    iceberg: &IcebergTable,
    state: &IcebergState,
) -> TableResult<()> {
    let Some(expected) = &iceberg.catalog else { return Ok(()) };
    let failed = |error: CatalogError| error_of(table, error.to_string());
    let catalog = match table.catalog {
        Some(catalog) if catalog.name() == expected => catalog,
        _ => return Err(error_of(table, format!("this process has no settings for {expected}"))),
    };
    let name = name_of(table);
    let metadata = format!("{}/{ICEBERG_FOLDER}{}", iceberg.location, iceberg_metadata_name(root.sequence));
    let mut uncertain = CatalogError::Uncertain(String::new());
    for pause in RETRY_PAUSES {
        std::thread::sleep(pause);
        let tried = match catalog.load(name).map_err(failed)? {
            None => match catalog.register(name, &metadata) {
                Err(CatalogError::Unsupported(_)) => match state.catalog_creation(iceberg) {
                    Some(creation) => catalog.commit(name, &creation),
                    None => return Ok(()),
                },
                registered => registered,
            },
            // Recreated metadata has another id.
            Some(found) if found.table_uuid != iceberg.id && is_at(&found.location, &iceberg.location) => {
                catalog.remove(name).map_err(failed)?;
                continue;
            }
            Some(found) if found.table_uuid != iceberg.id => {
                return Err(foreign(table, format!("it is another table, at `{}`", found.location)));
            }
            Some(found) => match state.catalog_update(iceberg, &found) {
                Ok(None) => return Ok(()),
                Ok(Some(update)) => catalog.commit(name, &update),
                Err(change) => return Err(foreign(table, change.to_string())),
            },
        };
        match tried {
            Err(error @ CatalogError::Uncertain(_)) => uncertain = error,
            tried => return tried.map_err(failed),
        }
    }
    Err(failed(uncertain))
}

/// Removes the table from the catalog, unless the catalog has another one of that name.
///
/// # Errors
/// [`TableError::Catalog`] if the catalog can't be reached.
pub fn remove_from_catalog(table: &TableStore<'_>) -> TableResult<()> {
    let Some(catalog) = table.catalog else { return Ok(()) };
    let location = table.location()?;
    let failed = |error: CatalogError| error_of(table, error.to_string());
    match catalog.load(name_of(table)).map_err(failed)? {
        Some(found) if is_at(&found.location, &location) => catalog.remove(name_of(table)).map_err(failed),
        Some(_) | None => Ok(()),
    }
}

/// Removes the tables of a deleted or renamed pipeline from the catalog. Failures are only logged.
pub fn remove_all_from_catalog(store: &dyn ObjectStore, slug: &Slug, catalog: Option<&dyn IcebergCatalog>) {
    let names = tables(store, slug).unwrap_or_else(|error| {
        tracing::warn!(pipeline = %slug, %error, "listing tables failed; they stay in the Iceberg catalog");
        Vec::new()
    });
    for name in &names {
        let table = TableStore { catalog, ..TableStore::new(store, slug, name) };
        let root = table.root().ok();
        let known = root.as_ref().and_then(|found| found.readable()?.iceberg.as_ref()?.catalog.clone());
        let Some(known) = known else { continue };
        let removed = match catalog {
            Some(catalog) if catalog.name() == known => remove_from_catalog(&table),
            _ => Err(error_of(&table, format!("this process has no settings for {known}"))),
        };
        if let Err(error) = removed {
            tracing::warn!(pipeline = %slug, table = name, %error, "table stays in the Iceberg catalog; remove it there");
        }
    }
}

fn name_of<'a>(table: &TableStore<'a>) -> CatalogName<'a> {
    CatalogName { slug: table.slug, table: table.table }
}

fn is_at(found: &str, location: &str) -> bool {
    found.trim_end_matches('/') == location
}

fn error_of(table: &TableStore<'_>, reason: String) -> TableError {
    TableError::Catalog { table: table.table.to_owned(), reason, is_foreign: false }
}

fn foreign(table: &TableStore<'_>, reason: String) -> TableError {
    TableError::Catalog { table: table.table.to_owned(), reason, is_foreign: true }
}
