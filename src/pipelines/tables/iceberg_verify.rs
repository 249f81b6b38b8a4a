//! Compares a table's Iceberg metadata with its manifest.
//!
//! All of it is made from the manifest, so that each object has one right text, or its hash in its name.
//!
//! Must not: write anything.

use std::collections::BTreeSet;

use super::iceberg_log::{read, state};
use super::log_fault::LogFault;
use super::{TableResult, TableStore};
use crate::domain::iceberg::name_matches_content;
use crate::domain::layout::{ICEBERG_HINT_NAME, iceberg_metadata_name, iceberg_prefix};
use crate::domain::table_log::root::Root;
use crate::ports::store::{Bucket, list_all};

/// The first difference between the metadata of the current snapshot and the manifest.
///
/// # Errors
/// If the store fails.
pub(super) fn first_fault(table: &TableStore<'_>, root: &Root) -> TableResult<Option<LogFault>> {
    let Some(iceberg) = root.iceberg.as_ref().filter(|iceberg| !iceberg.is_stale) else { return Ok(None) };
    let (state, prefix) = (state(table, iceberg)?, iceberg_prefix(table.slug, table.table));
    let fault = |name: &str, found: Option<&str>| LogFault {
        key: format!("{prefix}{name}"),
        is_missing: found.is_none(),
        found: found.unwrap_or_default().to_owned(),
    };
    for listed in list_all(table.store, Bucket::Warehouse, &prefix)? {
        let version = listed.key[prefix.len()..].strip_prefix('v').and_then(|name| name.strip_suffix(".metadata.json"));
        if version.and_then(|version| version.parse::<u64>().ok()).is_some_and(|version| version > root.sequence) {
            return Ok(Some(fault(&listed.key[prefix.len()..], Some("another program wrote it"))));
        }
    }
    let (metadata, text) = (iceberg_metadata_name(root.sequence), state.metadata(iceberg));
    let expected = [(metadata.as_str(), text.as_bytes()), (ICEBERG_HINT_NAME, root.sequence.to_string().as_bytes())]
        .map(|(name, bytes)| (name.to_owned(), bytes.to_vec()));
    for (name, bytes) in &expected {
        match read(table, &format!("{prefix}{name}"))? {
            Some(found) if found == *bytes => {}
            Some(_) => return Ok(Some(fault(name, Some("it doesn't match the manifest")))),
            None => return Ok(Some(fault(name, None))),
        }
    }
    for name in state.names() {
        match read(table, &format!("{prefix}{name}"))? {
            Some(bytes) if name_matches_content(name, &bytes) => {}
            Some(_) => return Ok(Some(fault(name, Some("its SHA-256 is not the one in its name")))),
            None => return Ok(Some(fault(name, None))),
        }
    }
    Ok(None)
}

/// The names that the metadata of the current snapshot has in its folder.
///
/// # Errors
/// If the store fails.
pub(super) fn present_names(table: &TableStore<'_>, root: &Root) -> TableResult<BTreeSet<String>> {
    let Some(iceberg) = &root.iceberg else { return Ok(BTreeSet::new()) };
    let state = state(table, iceberg)?;
    let own = [iceberg_metadata_name(root.sequence), ICEBERG_HINT_NAME.to_owned()];
    Ok(state.names().into_iter().map(str::to_owned).chain(own).collect())
}
