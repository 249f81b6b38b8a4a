//! Which objects a publish writes, leaves and deletes, and the mark that says so beforehand.

use std::collections::{BTreeMap, BTreeSet};

use super::Listing;
use crate::domain::manifest::{FileEntry, Manifest, Publishing, partition_of};

/// The writes of a publish, in their order: the mark, the puts, the deletes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Publication {
    /// Keys to write, in order.
    pub puts: Vec<String>,
    /// Keys whose object already is what would be written, with its tag.
    pub skipped: BTreeMap<String, Option<String>>,
    /// Keys to delete after the last put, in order: what the listing shows and the next manifest lacks.
    pub deletes: Vec<String>,
    /// `None` if no object is written or deleted.
    pub mark: Option<Publishing>,
}

/// Decides between `old` (the manifest as read, if any) and `next`. `made`: the keys of which this run made the bytes;
/// `output`: what lies there, with tags wherever the store has any.
///
/// A file is left alone only if the listed object is the one of the old manifest, that one has the bytes which were
/// made now, and no publish that died may have written to its partition.
pub fn publication(
    old: Option<&Manifest>,
    next: &Manifest,
    made: &BTreeSet<String>,
    output: &Listing,
    job_id: &str,
    fence: u64,
) -> Publication {
    let died = old.and_then(|m| m.publishing.as_ref());
    let before: BTreeMap<&str, &FileEntry> = old.iter().flat_map(|m| m.files()).map(|f| (f.key.as_str(), f)).collect();
    let marked = |key: &str| died.is_some_and(|mark| is_marked(mark, &next.table, key, next));
    let mut plan = Publication::default();
    for file in next.files().filter(|f| made.contains(&f.key)) {
        let same = before.get(file.key.as_str()).filter(|b| b.size == file.size && b.sha256 == file.sha256);
        let listed = output.get(&file.key);
        match same.zip(listed) {
            Some((before, listed))
                if listed.size == before.size
                    && listed.etag.is_some()
                    && listed.etag == before.etag
                    && !marked(&file.key) =>
            {
                plan.skipped.insert(file.key.clone(), listed.etag.clone());
            }
            _ => plan.puts.push(file.key.clone()),
        }
    }
    plan.puts.sort();
    let kept: BTreeSet<&str> = next.files().map(|f| f.key.as_str()).collect();
    plan.deletes = output.keys().filter(|key| !kept.contains(key.as_str())).cloned().collect();
    if !plan.puts.is_empty() || !plan.deletes.is_empty() {
        plan.mark = Some(mark(old, next, &plan, job_id, fence));
    }
    plan
}

/// Whether a publish that died may have written to `key`.
fn is_marked(mark: &Publishing, table: &str, key: &str, next: &Manifest) -> bool {
    match partition_of(table, key) {
        Some(partition) => mark.partitions.contains(partition),
        None => next.rejects.iter().any(|(source, file)| file.key == key && mark.rejects.contains(source)),
    }
}

/// Takes over what a mark left behind says: until a publish is finished, all of it stays in doubt.
fn mark(old: Option<&Manifest>, next: &Manifest, plan: &Publication, job_id: &str, fence: u64) -> Publishing {
    let mut mark = Publishing {
        job_id: job_id.to_owned(),
        fence,
        partitions: BTreeSet::new(),
        rejects: BTreeSet::new(),
        files: Vec::new(),
    };
    if let Some(died) = old.and_then(|m| m.publishing.clone()) {
        mark.partitions = died.partitions;
        mark.rejects = died.rejects;
        mark.files = died.files;
    }
    let changed: BTreeSet<&str> = plan.puts.iter().chain(&plan.deletes).map(String::as_str).collect();
    mark.partitions.extend(changed.iter().filter_map(|k| partition_of(&next.table, k)).map(str::to_owned));
    for manifest in old.into_iter().chain([next]) {
        let rejects = manifest.rejects.iter().filter(|(_, file)| changed.contains(file.key.as_str()));
        mark.rejects.extend(rejects.map(|(source, _)| source.clone()));
    }
    let puts = next.partitions.values().flat_map(|p| &p.files).filter(|f| changed.contains(f.key.as_str()));
    for file in puts.map(|f| FileEntry { etag: None, ..f.clone() }) {
        if !mark.files.contains(&file) {
            mark.files.push(file);
        }
    }
    mark
}
