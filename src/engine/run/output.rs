//! The files of one table in the warehouse, and whether they are ours.

use std::collections::BTreeMap;
use std::io::Read;

use sha2::{Digest, Sha256};

use super::request::RunRequest;
use crate::domain::digest::hex;
use crate::domain::job::RunError;
use crate::domain::layout::{pipeline_prefix, rejects_prefix, table_prefix};
use crate::domain::manifest::{FileEntry, Manifest, partition_of};
use crate::domain::plan::{ListedObject, Listing, NextManifest};
use crate::engine::run_error::store_error;
use crate::ports::store::{Bucket, ObjectMeta, StoreError, list_all};
use crate::sync::parallel_map;

/// Lists the table's files and its rejects.
pub(super) fn list(request: &RunRequest<'_>, table: &str) -> Result<Listing, RunError> {
    let pipeline = pipeline_prefix(request.slug());
    let prefixes = [table_prefix(request.slug(), table), rejects_prefix(request.slug(), table)];
    let at_a_time = if request.store.is_remote() { prefixes.len() } else { 1 };
    let list = |prefix: &String| list_all(request.store, Bucket::Warehouse, prefix);
    let objects = parallel_map(&prefixes, at_a_time, list).map_err(store_error)?;
    let listed = |object: ObjectMeta| {
        // Folder markers of other tools are not files of a table.
        let key = object.key.strip_prefix(&pipeline).filter(|key| !key.ends_with('/'))?.to_owned();
        Some((key, ListedObject { size: object.size, etag: object.etag.map(|e| e.0) }))
    };
    Ok(objects.into_iter().flatten().filter_map(listed).collect())
}

/// Checks the files of doubtful retained partitions: keeps those with bytes known from the manifest or its publish
/// intent, drops the others. Returns the number of partitions that lost files.
pub(super) fn verify_doubtful(
    request: &RunRequest<'_>,
    old: &Manifest,
    output: &Listing,
    next: &mut NextManifest,
) -> Result<u64, RunError> {
    let mut lost = 0;
    for partition in &next.doubtful {
        let Some(entry) = next.manifest.partitions.get_mut(partition) else { continue };
        let known = known_files(old, partition);
        let mut kept = Vec::new();
        for (key, candidates) in &known {
            kept.extend(match_file(request, key, candidates, output)?);
        }
        if kept.len() < entry.files.len() {
            let table = &old.table;
            tracing::warn!(table, partition, "files of a retained partition changed; dropped them");
            lost += 1;
        }
        entry.files = kept;
        if entry.files.is_empty() {
            next.manifest.partitions.remove(partition);
            next.deleted.insert(partition.clone());
        }
    }
    Ok(lost)
}

/// The files that may have been written, by key.
fn known_files<'m>(manifest: &'m Manifest, partition: &str) -> BTreeMap<&'m str, Vec<&'m FileEntry>> {
    let published = manifest.partitions.get(partition).into_iter().flat_map(|p| &p.files);
    let marked = manifest.publishing.iter().flat_map(|m| &m.files);
    let marked = marked.filter(|f| partition_of(&manifest.table, &f.key) == Some(partition));
    let mut known: BTreeMap<&str, Vec<&FileEntry>> = BTreeMap::new();
    for file in published.chain(marked) {
        known.entry(&file.key).or_default().push(file);
    }
    known
}

/// The candidate with the bytes at `key`, and its current ETag.
fn match_file(
    request: &RunRequest<'_>,
    key: &str,
    candidates: &[&FileEntry],
    output: &Listing,
) -> Result<Option<FileEntry>, RunError> {
    let Some(listed) = output.get(key) else { return Ok(None) };
    if !candidates.iter().any(|c| c.size == listed.size) {
        return Ok(None);
    }
    let full_key = format!("{}{key}", pipeline_prefix(request.slug()));
    let mut reader = match request.store.get(Bucket::Warehouse, &full_key, None) {
        Ok(reader) => reader,
        Err(StoreError::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(store_error(error)),
    };
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        let read = reader.body.read(&mut buffer).map_err(|source| {
            let (bucket, key) = (Bucket::Warehouse, full_key.clone());
            store_error(StoreError::Transient { bucket, key, operation: "reading", source })
        })?;
        if read == 0 {
            break;
        }
        digest.update(&buffer[..read]);
    }
    let sha256 = hex(&digest.finalize());
    let found = candidates.iter().find(|c| c.sha256 == sha256 && c.size == listed.size);
    Ok(found.map(|c| FileEntry { etag: reader.meta.etag.map(|e| e.0), ..(*c).clone() }))
}
