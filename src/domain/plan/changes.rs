//! Finds changed sources and dirty partitions, and the partitions that they affect.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, TimeDelta, Utc};

use super::Listing;
use crate::domain::file_tag::may_hide_a_change;
use crate::domain::manifest::{Manifest, SourceEntry, partition_of};

/// A source last modified less than this before it was read may have been modified again within the resolution of the
/// store's clock.
const SETTLED_AFTER: TimeDelta = TimeDelta::seconds(2);

/// The input of one table's plan. All keys are relative to the pipeline's prefix.
#[derive(Debug, Clone, Copy)]
pub struct PlanInput<'a> {
    pub table: &'a str,
    /// `None` if there is no usable one.
    pub manifest: Option<&'a Manifest>,
    pub fingerprint: &'a str,
    pub layout: &'a str,
    /// The sources that the table's globs match, each with its tag (from HEAD if listings have none).
    pub sources: &'a Listing,
    /// Every key in the pipeline's part of the lake, matched or not.
    pub lake: &'a BTreeSet<String>,
    /// The objects under the prefixes of the table and its rejects.
    pub output: &'a Listing,
    /// Limits the changed sources to keys with this prefix; `""` for all.
    pub prefix: &'a str,
    pub clean: bool,
}

/// Partitions whose sources were removed can't be rebuilt, and don't fit the new layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CleanRunRequired {
    /// Sorted.
    pub partitions: Vec<String>,
}

/// What a run must do with one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Every source is read and every partition rebuilt: a clean run, or a changed fingerprint.
    pub whole: bool,
    /// Sources in the lake that changed.
    pub changed: BTreeSet<String>,
    /// Sources in the manifest that are no longer sources.
    pub removed: BTreeSet<String>,
    /// Partitions whose content may differ from the manifest.
    pub dirty: BTreeSet<String>,
    /// Whether a publish intent or a rejects file was left behind; no partition need be dirty.
    pub needs_cleanup: bool,
}

/// Whether only a HEAD can tell if a source listed without a tag changed since it was read.
pub fn needs_head(entry: Option<&SourceEntry>, size: u64, modified: DateTime<Utc>) -> bool {
    let Some(entry) = entry else { return true };
    let Ok(read_at) = DateTime::parse_from_rfc3339(&entry.read_at) else { return true };
    entry.size != size || modified + SETTLED_AFTER > read_at
}

impl Plan {
    /// Plans from manifest and listings.
    ///
    /// # Errors
    /// If the layout changed while there are partitions that can't be rebuilt, whose sources were all removed.
    pub fn new(now: &PlanInput<'_>) -> Result<Self, CleanRunRequired> {
        let refingerprinted = now.manifest.is_some_and(|m| m.fingerprint != now.fingerprint);
        if !now.clean && now.manifest.is_some_and(|m| m.layout != now.layout) {
            let partitions = orphans(now);
            if !partitions.is_empty() {
                return Err(CleanRunRequired { partitions });
            }
        }
        let dirty = dirty_partitions(now);
        let dirty_sources = sources_with_dirty_rejects(now);
        let needs_cleanup = has_intent(now) || has_stray_rejects(now) || !dirty_sources.is_empty();
        let whole = now.clean || refingerprinted;
        if whole {
            let known = now.manifest.iter().flat_map(|m| m.sources.keys());
            let removed = known.filter(|k| !now.sources.contains_key(*k)).cloned().collect();
            return Ok(Self { whole, changed: now.sources.keys().cloned().collect(), removed, dirty, needs_cleanup });
        }
        let prefix = if dirty.is_empty() && !needs_cleanup { now.prefix } else { "" };
        let mut plan = Self { whole, changed: BTreeSet::new(), removed: BTreeSet::new(), dirty, needs_cleanup };
        let differing = changed_sources(now.manifest, now.sources);
        for key in differing.into_iter().filter(|k| k.starts_with(prefix)).chain(dirty_sources) {
            plan.include(now, key);
        }
        loop {
            let required = plan.required_sources(now, &plan.affected_partitions(now, &BTreeMap::new()));
            if required.is_empty() {
                return Ok(plan);
            }
            required.into_iter().for_each(|key| plan.include(now, key));
        }
    }

    /// Whether nothing has to be read or written.
    pub fn is_noop(&self, now: &PlanInput<'_>) -> bool {
        let never_published = now.manifest.is_none() && now.sources.is_empty();
        let unchanged =
            self.changed.is_empty() && self.removed.is_empty() && self.dirty.is_empty() && !self.needs_cleanup;
        unchanged && (!self.whole || never_published)
    }

    /// Whether all sources are read as changed, so that the affected partitions needn't be known before the build.
    pub fn rebuilds_all(&self, now: &PlanInput<'_>) -> bool {
        self.whole || now.sources.keys().all(|k| self.changed.contains(k))
    }

    /// The partitions that must be rebuilt or deleted. `has`: the partitions of each changed source, as parsed.
    pub fn affected_partitions(
        &self,
        now: &PlanInput<'_>,
        has: &BTreeMap<String, BTreeSet<String>>,
    ) -> BTreeSet<String> {
        let mut affected: BTreeSet<String> = self.dirty.clone();
        affected.extend(has.values().flatten().cloned());
        if let Some(manifest) = now.manifest {
            if self.whole {
                affected.extend(manifest.partitions.keys().cloned());
            }
            for key in self.changed.iter().chain(&self.removed) {
                affected.extend(manifest.sources.get(key).iter().flat_map(|s| s.partitions.keys().cloned()));
            }
            let fed = |partition: &&String| {
                let contributors = manifest.contributors(partition);
                contributors.iter().any(|k| self.changed.contains(*k) || self.removed.contains(*k))
            };
            affected.extend(manifest.partitions.keys().filter(fed).cloned());
        }
        affected
    }

    /// Changed sources outside the prefix with old rows in an affected partition; they must be included.
    pub fn required_sources(&self, now: &PlanInput<'_>, affected: &BTreeSet<String>) -> BTreeSet<String> {
        let Some(manifest) = now.manifest.filter(|_| !self.whole) else { return BTreeSet::new() };
        let in_touched: BTreeSet<&str> = affected.iter().flat_map(|p| manifest.contributors(p)).collect();
        changed_sources(now.manifest, now.sources)
            .into_iter()
            .filter(|key| !self.changed.contains(key) && !self.removed.contains(key))
            .filter(|key| {
                in_touched.contains(key.as_str())
                    || manifest.sources.get(key).is_some_and(|s| s.partitions.keys().any(|p| affected.contains(p)))
            })
            .collect()
    }

    /// Includes a changed or removed source.
    pub fn include(&mut self, now: &PlanInput<'_>, key: String) {
        let set = if now.sources.contains_key(&key) { &mut self.changed } else { &mut self.removed };
        set.insert(key);
    }

    /// The unchanged sources with rows in affected partitions, which are read again.
    pub fn contributors(&self, now: &PlanInput<'_>, affected: &BTreeSet<String>) -> BTreeSet<String> {
        let entries = now.manifest.iter().flat_map(|m| &m.sources);
        entries
            .filter(|(key, _)| now.sources.contains_key(*key) && !self.changed.contains(*key))
            .filter(|(_, entry)| entry.partitions.keys().any(|p| affected.contains(p)))
            .map(|(key, _)| key.clone())
            .collect()
    }
}

/// Whether a source may have changed after it was read without a new tag, within the resolution of its file's times.
fn is_doubtful(entry: &SourceEntry) -> bool {
    let Ok(read_at) = DateTime::parse_from_rfc3339(&entry.read_at) else { return true };
    entry.etag.as_deref().is_some_and(|tag| may_hide_a_change(tag, read_at.to_utc()))
}

/// Sources that are new, changed or gone.
pub fn changed_sources(manifest: Option<&Manifest>, sources: &Listing) -> BTreeSet<String> {
    let entry = |key: &str| manifest.and_then(|m| m.sources.get(key));
    let current = sources.iter().filter(|(key, listed)| {
        entry(key).is_none_or(|e| e.size != listed.size || e.etag.is_none() || e.etag != listed.etag || is_doubtful(e))
    });
    let known = manifest.iter().flat_map(|m| m.sources.keys());
    let gone = known.filter(|key| !sources.contains_key(*key));
    current.map(|(key, _)| key).chain(gone).cloned().collect()
}

/// Partitions named in a intent, and those whose listed files aren't the manifest's.
fn dirty_partitions(now: &PlanInput<'_>) -> BTreeSet<String> {
    let mut dirty = BTreeSet::new();
    let mut known = BTreeSet::new();
    if let Some(manifest) = now.manifest {
        dirty.extend(manifest.publishing.iter().flat_map(|m| m.partitions.iter().cloned()));
        for (partition, entry) in &manifest.partitions {
            for file in &entry.files {
                known.insert(file.key.as_str());
                if !now.output.get(&file.key).is_some_and(|l| l.matches(file.size, file.etag.as_deref())) {
                    dirty.insert(partition.clone());
                }
            }
        }
    }
    let strays = now.output.keys().filter(|key| !known.contains(key.as_str()));
    dirty.extend(strays.filter_map(|key| partition_of(now.table, key)).map(str::to_owned));
    dirty
}

/// Sources, current or published, whose rejects file may differ from the manifest's.
fn sources_with_dirty_rejects(now: &PlanInput<'_>) -> BTreeSet<String> {
    let Some(manifest) = now.manifest else { return BTreeSet::new() };
    let intended = manifest.publishing.iter().flat_map(|m| &m.rejects);
    let differ = manifest
        .rejects
        .iter()
        .filter(|(_, file)| !now.output.get(&file.key).is_some_and(|l| l.matches(file.size, file.etag.as_deref())));
    let all = intended.chain(differ.map(|(source, _)| source));
    let known = |source: &&String| now.sources.contains_key(*source) || manifest.sources.contains_key(*source);
    all.filter(known).cloned().collect()
}

fn has_intent(now: &PlanInput<'_>) -> bool {
    now.manifest.is_some_and(|m| m.publishing.is_some())
}

/// Whether there are rejects files that the manifest doesn't know.
fn has_stray_rejects(now: &PlanInput<'_>) -> bool {
    let known: BTreeSet<&str> = now.manifest.iter().flat_map(|m| m.rejects.values()).map(|f| f.key.as_str()).collect();
    now.output.keys().any(|key| partition_of(now.table, key).is_none() && !known.contains(key.as_str()))
}

/// Published partitions whose contributors were all removed from the lake.
fn orphans(now: &PlanInput<'_>) -> Vec<String> {
    let manifest = now.manifest.into_iter();
    manifest.flat_map(|m| m.partitions.keys().filter(|p| is_orphan(now, m, p))).cloned().collect()
}

/// Whether none of the sources that last fed a published partition is in the lake.
pub(super) fn is_orphan(now: &PlanInput<'_>, manifest: &Manifest, partition: &str) -> bool {
    manifest.partitions.contains_key(partition)
        && manifest.contributors(partition).iter().all(|source| !now.lake.contains(*source))
}

#[cfg(test)]
mod tests {
    use super::super::ListedObject;
    use super::super::testing::{World, file_entry, has, set, source_entry};
    use super::*;
    use crate::domain::manifest::PublishIntent;

    fn plan(world: &World) -> Plan {
        Plan::new(&world.situation()).unwrap()
    }

    fn intent(partitions: &[&str]) -> PublishIntent {
        PublishIntent {
            job_id: "died".into(),
            fence: 2,
            partitions: set(partitions),
            rejects: BTreeSet::new(),
            files: vec![],
        }
    }

    #[test]
    fn unchanged_table_needs_no_work() {
        let world = World::published(&[("a", &["p=1"]), ("b", &["p=1", "p=2"])]);
        assert!(plan(&world).is_noop(&world.situation()));
    }

    #[test]
    fn new_tag_or_size_is_a_change_and_a_missing_source_is_removed() {
        let mut world = World::published(&[("a", &["p=1"]), ("b", &["p=2"]), ("c", &["p=3"]), ("d", &["p=4"])]);
        world.put("a", "2");
        world.sources.insert("b".into(), ListedObject { size: 11, etag: Some("1".into()) });
        world.remove("c");
        world.put("new", "1");
        let plan = plan(&world);
        assert_eq!(plan.changed, set(&["a", "b", "new"]));
        assert_eq!(plan.removed, set(&["c"]));
    }

    #[test]
    fn moved_rows_affect_old_and_new_partitions() {
        let mut world = World::published(&[("a", &["p=1"]), ("b", &["p=1", "p=2", "p=3"]), ("c", &["p=3"])]);
        world.put("a", "2");
        let plan = plan(&world);
        let now = world.situation();
        let affected = plan.affected_partitions(&now, &has(&[("a", &["p=2"])]));
        assert_eq!(affected, set(&["p=1", "p=2"]));
        assert_eq!(plan.contributors(&now, &affected), set(&["b"]), "`c` has no rows there, `a` is read anyway");
    }

    #[test]
    fn partitions_whose_files_differ_from_the_manifest_are_dirty() {
        let sources: &[(&str, &[&str])] = &[("a", &["p=1"]), ("b", &["p=2"]), ("c", &["p=3"]), ("d", &["p=4"])];
        let mut world = World::published(sources);
        world.output.remove("t/p=1/part-00000.parquet");
        world.output.get_mut("t/p=2/part-00000.parquet").unwrap().size += 1;
        world.output.get_mut("t/p=3/part-00000.parquet").unwrap().etag = Some("other".into());
        world.output.insert("t/p=9/x".into(), ListedObject { size: 1, etag: None });
        let plan = plan(&world);
        assert_eq!(plan.dirty, set(&["p=1", "p=2", "p=3", "p=9"]));
        assert_eq!(plan.changed, set(&[]));
        let affected = plan.affected_partitions(&world.situation(), &BTreeMap::new());
        assert_eq!(
            plan.contributors(&world.situation(), &affected),
            set(&["a", "b", "c"]),
            "unchanged, yet read again"
        );
    }

    #[test]
    fn sizes_are_compared_if_listings_have_no_tags() {
        let mut world = World::published(&[("a", &["p=1"])]);
        world.output.values_mut().for_each(|l| l.etag = None);
        assert!(plan(&world).is_noop(&world.situation()));
        world.output.values_mut().for_each(|l| l.size += 1);
        assert_eq!(plan(&world).dirty, set(&["p=1"]));
    }

    #[test]
    fn partitions_of_a_leftover_intent_are_dirty() {
        let mut world = World::published(&[("a", &["p=1"])]);
        world.manifest_mut().publishing = Some(intent(&["p=1", "p=7"]));
        let plan = plan(&world);
        assert_eq!(plan.dirty, set(&["p=1", "p=7"]));
        assert!(!plan.is_noop(&world.situation()));
    }

    #[test]
    fn intent_without_partitions_needs_cleanup() {
        let mut world = World::published(&[("a", &["p=1"])]);
        world.manifest_mut().publishing = Some(intent(&[]));
        assert!(!plan(&world).is_noop(&world.situation()));
    }

    #[test]
    fn source_with_changed_rejects_file_is_read_again() {
        let mut world = World::published(&[("a", &["p=1"]), ("b", &["p=2"]), ("c", &["p=3"])]);
        for source in ["a", "b", "c"] {
            let file = file_entry(&format!("_rejected_rows/table=t/{source}.parquet"), &[source]);
            let listed = ListedObject { size: file.size, etag: file.etag.clone() };
            world.output.insert(file.key.clone(), listed);
            world.manifest_mut().rejects.insert(source.into(), file);
        }
        assert!(plan(&world).is_noop(&world.situation()));
        world.output.remove("_rejected_rows/table=t/a.parquet");
        world.manifest_mut().publishing = Some(PublishIntent { rejects: set(&["b", "gone"]), ..intent(&[]) });
        assert_eq!(plan(&world).changed, set(&["a", "b"]));
        world.remove("a");
        world.prefix = "c".into();
        assert_eq!(plan(&world).removed, set(&["a"]), "whatever the prefix");
    }

    #[test]
    fn unknown_rejects_file_needs_cleanup() {
        let mut world = World::published(&[("a", &["p=1"])]);
        world.output.insert("_rejected_rows/table=t/zzz.parquet".into(), ListedObject { size: 1, etag: None });
        let plan = plan(&world);
        assert!(plan.changed.is_empty() && !plan.is_noop(&world.situation()));
    }

    #[test]
    fn prefix_limits_the_changed_sources() {
        let mut world = World::published(&[("a/1", &["p=1"]), ("b/1", &["p=2"])]);
        world.put("a/1", "2");
        world.put("b/1", "2");
        world.put("b/2", "1");
        world.prefix = "a/".into();
        let plan = plan(&world);
        assert_eq!(plan.changed, set(&["a/1"]));
        assert!(plan.required_sources(&world.situation(), &set(&["p=1"])).is_empty());
    }

    #[test]
    fn source_outside_the_prefix_is_included_if_a_partition_with_its_old_rows_is_affected() {
        let mut world =
            World::published(&[("a/1", &["p=1"]), ("b/1", &["p=1", "p=2"]), ("b/2", &["p=2"]), ("b/3", &["p=3"])]);
        for source in ["a/1", "b/1", "b/3"] {
            world.put(source, "2");
        }
        world.remove("b/2");
        world.prefix = "a/".into();
        let plan = plan(&world);
        assert_eq!(plan.changed, set(&["a/1", "b/1"]), "`b/1` shares p=1 with `a/1`");
        assert_eq!(plan.removed, set(&["b/2"]), "which shares p=2 with `b/1`");
        let required = plan.required_sources(&world.situation(), &set(&["p=1", "p=2", "p=3"]));
        assert_eq!(required, set(&["b/3"]), "if parsing shows that p=3 is affected");
    }

    #[test]
    fn dirty_partitions_clean_runs_and_fingerprint_changes_ignore_the_prefix() {
        let base = || {
            let mut world = World::published(&[("a/1", &["p=1"]), ("b/1", &["p=2"])]);
            world.put("b/1", "2");
            world.prefix = "a/".into();
            world
        };
        let mut dirty = base();
        dirty.output.remove("t/p=1/part-00000.parquet");
        assert_eq!(plan(&dirty).changed, set(&["b/1"]));
        let clean = World { clean: true, ..base() };
        let refingerprinted = World { fingerprint: "g".into(), ..base() };
        for world in [clean, refingerprinted] {
            let plan = plan(&world);
            assert!(plan.whole && plan.rebuilds_all(&world.situation()));
            assert_eq!(plan.changed, set(&["a/1", "b/1"]));
        }
    }

    #[test]
    fn returning_source_affects_its_retained_partition() {
        let mut world = World::published(&[("a", &["p=1"]), ("b", &["p=2"])]);
        world.manifest_mut().sources.remove("a");
        world.manifest_mut().partitions.get_mut("p=1").unwrap().retained = true;
        let plan = plan(&world);
        assert_eq!(plan.changed, set(&["a"]));
        let affected = plan.affected_partitions(&world.situation(), &has(&[("a", &["p=3"])]));
        assert_eq!(affected, set(&["p=1", "p=3"]), "though the manifest has no entry of `a`");
    }

    #[test]
    fn new_layout_with_orphaned_partitions_needs_a_clean_run() {
        let mut world = World::published(&[("a", &["p=1"]), ("b", &["p=1", "p=2"]), ("c", &["p=3"])]);
        (world.fingerprint, world.layout) = ("g".into(), "m".into());
        assert!(Plan::new(&world.situation()).is_ok());
        world.remove("b");
        world.remove("c");
        let error = CleanRunRequired { partitions: vec!["p=2".into(), "p=3".into()] };
        assert_eq!(Plan::new(&world.situation()), Err(error));
        world.layout = "l".into();
        assert!(Plan::new(&world.situation()).is_ok(), "a change that leaves the layout as it was");
        (world.layout, world.clean) = ("m".into(), true);
        assert!(Plan::new(&world.situation()).is_ok(), "a clean run");
    }

    #[test]
    fn source_excluded_by_a_new_glob_is_still_in_the_lake() {
        let mut world = World::published(&[("a", &["p=1"])]);
        (world.fingerprint, world.layout) = ("g".into(), "m".into());
        world.sources.clear();
        assert!(Plan::new(&world.situation()).is_ok(), "its partition will be deleted, not retained");
    }

    #[test]
    fn empty_table_needs_no_work() {
        let mut world = World::published(&[]);
        world.manifest = None;
        assert!(plan(&world).is_noop(&world.situation()));
        world.clean = true;
        assert!(plan(&world).is_noop(&world.situation()));
        world.output.insert("t/p=1/part-00000.parquet".into(), ListedObject { size: 1, etag: None });
        assert_eq!(plan(&world).dirty, set(&["p=1"]));
    }

    #[test]
    fn source_without_a_listed_tag_needs_a_head_unless_it_settled_before_its_reading() {
        let entry = source_entry("1", &[]);
        let at = |ms: i64| DateTime::parse_from_rfc3339(&entry.read_at).unwrap().to_utc() - TimeDelta::milliseconds(ms);
        assert!(!needs_head(Some(&entry), 10, at(2000)));
        assert!(needs_head(Some(&entry), 10, at(1999)));
        assert!(needs_head(Some(&entry), 10, at(-1)));
        assert!(needs_head(Some(&entry), 11, at(9000)), "another size");
        assert!(needs_head(None, 10, at(9000)), "never read");
        let unreadable = SourceEntry { read_at: "yesterday".into(), ..entry.clone() };
        assert!(needs_head(Some(&unreadable), 10, at(9000)));
    }
}
