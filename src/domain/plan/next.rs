//! What the table is made of after the run.

use std::collections::{BTreeMap, BTreeSet};

use super::changes::{Plan, Situation, is_orphan};
use crate::domain::manifest::{FileEntry, Manifest, PartitionEntry, SourceEntry};

/// What a conversion gave, as manifest entries without tags.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Built {
    /// The sources that were read.
    pub sources: BTreeMap<String, SourceEntry>,
    /// The touched partitions that have rows.
    pub partitions: BTreeMap<String, Vec<FileEntry>>,
    /// By source, of the sources that were read.
    pub rejects: BTreeMap<String, FileEntry>,
}

/// The table as it will be, and what becomes of its partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Next {
    /// Files that are to be written have no tag yet.
    pub manifest: Manifest,
    /// Partitions that were built.
    pub built: BTreeSet<String>,
    /// Partitions that were published and are no more.
    pub deleted: BTreeSet<String>,
    /// Retained partitions of which it isn't sure that their files are as published. They can't be rebuilt, so each
    /// file has to be compared by its bytes, and left out if nobody knows it.
    pub doubtful: BTreeSet<String>,
}

/// Applies what was built to the manifest.
pub fn next_manifest(
    now: &Situation<'_>,
    plan: &Plan,
    touched: &BTreeSet<String>,
    built: Built,
    job_id: &str,
    fence: u64,
) -> Next {
    let mut next = Next {
        manifest: Manifest::new(now.table, now.fingerprint, now.layout),
        built: built.partitions.keys().cloned().collect(),
        deleted: BTreeSet::new(),
        doubtful: BTreeSet::new(),
    };
    if let Some(old) = now.manifest {
        for (partition, entry) in &old.partitions {
            if built.partitions.contains_key(partition) {
                continue;
            }
            let stays = !now.clean && (!touched.contains(partition) || is_orphan(now, old, partition));
            if !stays {
                next.deleted.insert(partition.clone());
                continue;
            }
            let retained = entry.retained || touched.contains(partition);
            if retained && plan.dirty.contains(partition) {
                next.doubtful.insert(partition.clone());
            }
            next.manifest.partitions.insert(partition.clone(), PartitionEntry { retained, ..entry.clone() });
        }
        if !plan.whole {
            let kept = |key: &&String| !plan.removed.contains(*key) && !built.sources.contains_key(*key);
            for key in old.sources.keys().filter(kept) {
                next.manifest.sources.insert(key.clone(), old.sources[key].clone());
                if let Some(file) = old.rejects.get(key) {
                    next.manifest.rejects.insert(key.clone(), file.clone());
                }
            }
        }
    }
    for (partition, files) in built.partitions {
        let before = now.manifest.and_then(|m| m.partitions.get(&partition)).filter(|e| same_files(&e.files, &files));
        let (job_id, fence) = before.map_or((job_id, fence), |e| (e.job_id.as_str(), e.fence));
        let entry = PartitionEntry { files, retained: false, job_id: job_id.to_owned(), fence };
        next.manifest.partitions.insert(partition, entry);
    }
    next.manifest.sources.extend(built.sources);
    next.manifest.rejects.extend(built.rejects);
    next
}

fn same_files(a: &[FileEntry], b: &[FileEntry]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.key == b.key && a.size == b.size && a.sha256 == b.sha256)
}
