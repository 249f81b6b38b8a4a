//! Builds the next manifest.

use std::collections::{BTreeMap, BTreeSet};

use super::changes::{Plan, PlanInput, is_orphan};
use crate::domain::manifest::{FileEntry, Manifest, PartitionEntry, SourceEntry};

/// The result of a conversion, as manifest entries without tags.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BuiltTable {
    /// The sources that were read.
    pub sources: BTreeMap<String, SourceEntry>,
    /// Affected partitions with rows.
    pub partitions: BTreeMap<String, Vec<FileEntry>>,
    /// By source.
    pub rejects: BTreeMap<String, FileEntry>,
}

/// The next manifest, with the changes of partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextManifest {
    /// Files to be written have no tag yet.
    pub manifest: Manifest,
    /// Partitions that were built.
    pub built: BTreeSet<String>,
    /// Published partitions that are deleted.
    pub deleted: BTreeSet<String>,
    /// Retained partitions whose files may differ from the published ones. They can't be rebuilt, so each file must be
    /// compared by its bytes, and dropped if it is unknown.
    pub doubtful: BTreeSet<String>,
}

/// Applies a conversion to the manifest.
pub fn next_manifest(
    now: &PlanInput<'_>,
    plan: &Plan,
    affected: &BTreeSet<String>,
    built: BuiltTable,
    job_id: &str,
    fence: u64,
) -> NextManifest {
    let mut next = NextManifest {
        manifest: Manifest { fence, ..Manifest::new(now.table, now.fingerprint, now.layout) },
        built: built.partitions.keys().cloned().collect(),
        deleted: BTreeSet::new(),
        doubtful: BTreeSet::new(),
    };
    if let Some(old) = now.manifest {
        for (partition, entry) in &old.partitions {
            if built.partitions.contains_key(partition) {
                continue;
            }
            let stays = !now.clean && (!affected.contains(partition) || is_orphan(now, old, partition));
            if !stays {
                next.deleted.insert(partition.clone());
                continue;
            }
            let retained = entry.retained || affected.contains(partition);
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

#[cfg(test)]
mod tests {
    use super::super::testing::{World, file_entry, has, set, source_entry};
    use super::*;
    use crate::domain::manifest::PublishIntent;

    fn apply(world: &World, built: BuiltTable, has_now: &[(&str, &[&str])]) -> NextManifest {
        let now = world.situation();
        let plan = Plan::new(&now).unwrap();
        let affected = plan.affected_partitions(&now, &has(has_now));
        next_manifest(&now, &plan, &affected, built, "j1", 2)
    }

    fn built(sources: &[(&str, &[&str])]) -> BuiltTable {
        let mut built = BuiltTable::default();
        for (source, partitions) in sources {
            built.sources.insert((*source).into(), source_entry("2", partitions));
            for partition in *partitions {
                let file = file_entry(&format!("t/{partition}/part-00000.parquet"), &[source]);
                let file = FileEntry { etag: None, sha256: "new".into(), ..file };
                built.partitions.insert((*partition).into(), vec![file]);
            }
        }
        built
    }

    #[test]
    fn partition_is_deleted_if_its_rows_moved() {
        let mut world = World::published(&[("a", &["p=1"]), ("b", &["p=2"])]);
        world.put("a", "2");
        let next = apply(&world, built(&[("a", &["p=3"])]), &[("a", &["p=3"])]);
        assert_eq!(next.deleted, set(&["p=1"]));
        assert_eq!(next.manifest.partitions.keys().cloned().collect::<BTreeSet<_>>(), set(&["p=2", "p=3"]));
        assert_eq!(next.manifest.sources["a"].etag.as_deref(), Some("2"));
        assert_eq!(next.manifest.sources["b"].etag.as_deref(), Some("1"));
    }

    #[test]
    fn partition_without_sources_is_retained() {
        let mut world = World::published(&[("a", &["p=1"]), ("b", &["p=2"])]);
        world.remove("a");
        let next = apply(&world, BuiltTable::default(), &[]);
        assert!(next.manifest.partitions["p=1"].retained);
        assert!(!next.manifest.partitions["p=2"].retained);
        assert!(!next.manifest.sources.contains_key("a"), "removed sources leave the manifest");
        assert!(next.deleted.is_empty() && next.doubtful.is_empty());
    }

    #[test]
    fn partition_is_deleted_if_one_source_was_removed_and_the_other_moved_its_rows() {
        let mut world = World::published(&[("a", &["p=1"]), ("b", &["p=1"])]);
        world.remove("a");
        world.put("b", "2");
        let next = apply(&world, built(&[("b", &["p=2"])]), &[("b", &["p=2"])]);
        assert_eq!(next.deleted, set(&["p=1"]));
    }

    #[test]
    fn retained_partition_with_new_rows_is_no_longer_retained() {
        let mut world = World::published(&[("a", &["p=1"])]);
        world.manifest_mut().sources.clear();
        world.manifest_mut().partitions.get_mut("p=1").unwrap().retained = true;
        let next = apply(&world, built(&[("a", &["p=1"])]), &[("a", &["p=1"])]);
        assert!(!next.manifest.partitions["p=1"].retained);
    }

    #[test]
    fn retained_partition_survives_a_change_that_keeps_the_layout() {
        let mut world = World::published(&[("a", &["p=1"]), ("b", &["p=2"])]);
        world.remove("a");
        world.fingerprint = "g".into();
        let next = apply(&world, built(&[("b", &["p=2"])]), &[("b", &["p=2"])]);
        assert!(next.manifest.partitions["p=1"].retained);
        assert_eq!(next.manifest.fingerprint, "g");
    }

    #[test]
    fn clean_run_keeps_only_its_own_output() {
        let mut world = World::published(&[("a", &["p=1"]), ("b", &["p=2"])]);
        world.remove("a");
        world.clean = true;
        let next = apply(&world, built(&[("b", &["p=2"])]), &[("b", &["p=2"])]);
        assert_eq!(next.deleted, set(&["p=1"]));
        assert_eq!(next.manifest.partitions.len(), 1);
    }

    #[test]
    fn doubtful_retained_partitions_are_listed() {
        let mut world = World::published(&[("a", &["p=1"]), ("b", &["p=2"])]);
        world.remove("a");
        world.output.remove("t/p=1/part-00000.parquet");
        assert_eq!(apply(&world, BuiltTable::default(), &[]).doubtful, set(&["p=1"]));
    }

    #[test]
    fn partition_of_a_crashed_run_only_is_not_retained() {
        let mut world = World::published(&[("a", &["p=1"])]);
        let file = FileEntry { etag: None, ..file_entry("t/p=2/part-00000.parquet", &["gone"]) };
        world.manifest_mut().publishing = Some(PublishIntent {
            job_id: "died".into(),
            fence: 2,
            partitions: set(&["p=2"]),
            rejects: BTreeSet::new(),
            files: vec![file],
        });
        let next = apply(&world, BuiltTable::default(), &[]);
        assert!(!next.manifest.partitions.contains_key("p=2"));
    }

    #[test]
    fn rejects_are_kept_replaced_or_dropped_with_their_sources() {
        let mut world = World::published(&[("kept", &["p=1"]), ("read", &["p=2"]), ("gone", &["p=3"])]);
        for source in ["kept", "read", "gone"] {
            let file = file_entry(&format!("_rejected_rows/table=t/{source}.parquet"), &[source]);
            world
                .output
                .insert(file.key.clone(), super::super::ListedObject { size: file.size, etag: file.etag.clone() });
            world.manifest_mut().rejects.insert(source.into(), file);
        }
        world.put("read", "2");
        world.remove("gone");
        let mut made = built(&[("read", &["p=2"])]);
        let next = apply(&world, made.clone(), &[("read", &["p=2"])]);
        assert_eq!(next.manifest.rejects.keys().collect::<Vec<_>>(), ["kept"], "`read` has no rejects any more");
        let file = FileEntry { sha256: "new".into(), ..file_entry("_rejected_rows/table=t/read.parquet", &["read"]) };
        made.rejects.insert("read".into(), file.clone());
        let next = apply(&world, made, &[("read", &["p=2"])]);
        assert_eq!(next.manifest.rejects["read"], file);
    }

    #[test]
    fn partition_with_unchanged_bytes_keeps_its_job() {
        let mut world = World::published(&[("a", &["p=1", "p=2"])]);
        world.put("a", "2");
        let mut made = built(&[("a", &["p=1", "p=2"])]);
        let old = &world.manifest.as_ref().unwrap().partitions["p=1"].files[0];
        made.partitions.insert("p=1".into(), vec![FileEntry { etag: None, ..old.clone() }]);
        let next = apply(&world, made, &[("a", &["p=1", "p=2"])]);
        let of = |p: &str| (next.manifest.partitions[p].job_id.clone(), next.manifest.partitions[p].fence);
        assert_eq!((of("p=1"), of("p=2")), (("j0".into(), 1), ("j1".into(), 2)));
    }
}
