//! Which objects a publish writes, leaves and deletes, and the intent that is stored first.

use std::collections::{BTreeMap, BTreeSet};

use super::Listing;
use crate::domain::manifest::{FileEntry, Manifest, PublishIntent, partition_of};

/// The writes of a publish, in order: intent, puts, deletes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Publication {
    /// Keys to write, in order.
    pub puts: Vec<String>,
    /// Keys whose object is already up to date, with its tag.
    pub skipped: BTreeMap<String, Option<String>>,
    /// Keys to delete after the last put, in order: listed and not in the next manifest.
    pub deletes: Vec<String>,
    /// `None` if no object is written or deleted.
    pub intent: Option<PublishIntent>,
}

/// Compares `old` (the current manifest, if any) with `next`. `made`: the keys of files that this run made; `output`: the
/// listed objects, with tags if the store has any.
///
/// A file is skipped only if the listed object is the old manifest's, with the same bytes as the new one, and no crashed
/// publish may have written to its partition.
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
    let in_doubt = |key: &str| died.is_some_and(|intent| is_in_intent(intent, &next.table, key, next));
    let mut plan = Publication::default();
    for file in next.files().filter(|f| made.contains(&f.key)) {
        let same = before.get(file.key.as_str()).filter(|b| b.size == file.size && b.sha256 == file.sha256);
        let listed = output.get(&file.key);
        match same.zip(listed) {
            Some((before, listed))
                if listed.size == before.size
                    && listed.etag.is_some()
                    && listed.etag == before.etag
                    && !in_doubt(&file.key) =>
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
        plan.intent = Some(intent(old, next, &plan, job_id, fence));
    }
    plan
}

/// Whether a publish that died may have written to `key`.
fn is_in_intent(intent: &PublishIntent, table: &str, key: &str, next: &Manifest) -> bool {
    match partition_of(table, key) {
        Some(partition) => intent.partitions.contains(partition),
        None => next.rejects.iter().any(|(source, file)| file.key == key && intent.rejects.contains(source)),
    }
}

/// Takes over what a intent left behind says: until a publish is finished, all of it stays in doubt.
fn intent(old: Option<&Manifest>, next: &Manifest, plan: &Publication, job_id: &str, fence: u64) -> PublishIntent {
    let mut intent = PublishIntent {
        job_id: job_id.to_owned(),
        fence,
        partitions: BTreeSet::new(),
        rejects: BTreeSet::new(),
        files: Vec::new(),
    };
    if let Some(died) = old.and_then(|m| m.publishing.clone()) {
        intent.partitions = died.partitions;
        intent.rejects = died.rejects;
        intent.files = died.files;
    }
    let changed: BTreeSet<&str> = plan.puts.iter().chain(&plan.deletes).map(String::as_str).collect();
    intent.partitions.extend(changed.iter().filter_map(|k| partition_of(&next.table, k)).map(str::to_owned));
    for manifest in old.into_iter().chain([next]) {
        let rejects = manifest.rejects.iter().filter(|(_, file)| changed.contains(file.key.as_str()));
        intent.rejects.extend(rejects.map(|(source, _)| source.clone()));
    }
    let puts = next.partitions.values().flat_map(|p| &p.files).filter(|f| changed.contains(f.key.as_str()));
    for file in puts.map(|f| FileEntry { etag: None, ..f.clone() }) {
        if !intent.files.contains(&file) {
            intent.files.push(file);
        }
    }
    intent
}

#[cfg(test)]
mod tests {
    use super::super::ListedObject;
    use super::super::testing::{World, file_entry, set};
    use super::*;

    const P1: &str = "t/p=1/part-00000.parquet";
    const P2: &str = "t/p=2/part-00000.parquet";

    fn decide(world: &World, next: &Manifest, made: &[&str]) -> Publication {
        publication(world.manifest.as_ref(), next, &set(made), &world.output, "j1", 2)
    }

    fn died(partitions: &[&str], rejects: &[&str]) -> PublishIntent {
        let files = vec![FileEntry { etag: None, ..file_entry("t/p=8/part-00000.parquet", &["z"]) }];
        PublishIntent { job_id: "died".into(), fence: 1, partitions: set(partitions), rejects: set(rejects), files }
    }

    fn world() -> (World, Manifest) {
        let world = World::published(&[("a", &["p=1"]), ("b", &["p=2"])]);
        let next = world.manifest.clone().unwrap();
        (world, next)
    }

    #[test]
    fn file_is_skipped_if_listing_manifest_and_new_bytes_agree() {
        let (world, next) = world();
        let publication = decide(&world, &next, &[P1, P2]);
        assert_eq!(publication.skipped.keys().cloned().collect::<BTreeSet<_>>(), set(&[P1, P2]));
        assert_eq!(publication.puts, [""; 0]);
        assert_eq!(publication.intent, None);
    }

    #[test]
    fn file_is_written_if_any_of_them_differs() {
        let (base, next) = world();
        let mut other_bytes = next.clone();
        other_bytes.partitions.get_mut("p=1").unwrap().files[0].sha256 = "new".into();
        assert_eq!(decide(&base, &other_bytes, &[P1, P2]).puts, [P1]);

        let (mut retagged, _) = world();
        retagged.output.get_mut(P1).unwrap().etag = Some("other".into());
        let (mut resized, _) = world();
        resized.output.get_mut(P1).unwrap().size += 1;
        let (mut untagged, _) = world();
        untagged.output.get_mut(P1).unwrap().etag = None;
        let (mut missing, _) = world();
        missing.output.remove(P1);
        for world in [retagged, resized, untagged, missing] {
            assert_eq!(decide(&world, &next, &[P1, P2]).puts, [P1]);
        }
    }

    #[test]
    fn file_in_a_partition_of_an_earlier_intent_is_written() {
        let (mut world, next) = world();
        world.manifest_mut().publishing = Some(died(&["p=1"], &[]));
        assert_eq!(decide(&world, &next, &[P1, P2]).puts, [P1]);
    }

    #[test]
    fn rejects_of_an_earlier_intent_are_written() {
        let (mut world, _) = world();
        let file = file_entry("_rejected_rows/table=t/a.parquet", &["a"]);
        world.output.insert(file.key.clone(), ListedObject { size: file.size, etag: file.etag.clone() });
        world.manifest_mut().rejects.insert("a".into(), file.clone());
        let next = world.manifest.clone().unwrap();
        assert_eq!(decide(&world, &next, &[&file.key]).puts, [""; 0]);
        world.manifest_mut().publishing = Some(died(&[], &["a"]));
        assert_eq!(decide(&world, &next, &[&file.key]).puts, [file.key]);
    }

    #[test]
    fn objects_outside_the_next_manifest_are_deleted() {
        let (mut world, mut next) = world();
        next.partitions.remove("p=1");
        world.output.insert("t/README.txt".into(), ListedObject { size: 1, etag: None });
        let publication = decide(&world, &next, &[]);
        assert_eq!(publication.deletes, ["t/README.txt", P1]);
        assert_eq!(publication.intent.unwrap().partitions, set(&["", "p=1"]));
    }

    #[test]
    fn intent_lists_writes_deletes_and_an_earlier_intent() {
        let (mut world, mut next) = world();
        world.manifest_mut().publishing = Some(died(&["p=8"], &["z"]));
        next.partitions.get_mut("p=1").unwrap().files[0].sha256 = "new".into();
        let rejects = file_entry("_rejected_rows/table=t/a.parquet", &["a"]);
        next.rejects.insert("a".into(), rejects.clone());
        let intent = decide(&world, &next, &[P1, &rejects.key]).intent.unwrap();
        assert_eq!((intent.job_id.as_str(), intent.fence), ("j1", 2));
        assert_eq!(intent.partitions, set(&["p=1", "p=8"]));
        assert_eq!(intent.rejects, set(&["a", "z"]));
        let files: Vec<&str> = intent.files.iter().map(|f| f.key.as_str()).collect();
        assert_eq!(files, ["t/p=8/part-00000.parquet", P1]);
        assert!(intent.files.iter().all(|f| f.etag.is_none()));
    }
}
