//! Which sources changed, which partitions are dirty, and what these touch.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, TimeDelta, Utc};

use super::Listing;
use crate::domain::manifest::{Manifest, SourceEntry, partition_of};

/// A source last modified less than this before it was read may have been modified again within the resolution of the
/// store's clock.
const SETTLED_AFTER: TimeDelta = TimeDelta::seconds(2);

/// What one table's plan is made from. All keys are relative to the pipeline's prefix.
#[derive(Debug, Clone, Copy)]
pub struct Situation<'a> {
    pub table: &'a str,
    /// As it was read; `None` if there is none that can be used.
    pub manifest: Option<&'a Manifest>,
    pub fingerprint: &'a str,
    pub layout: &'a str,
    /// The sources that the table's globs match, each with its tag (by HEAD where listings have none).
    pub sources: &'a Listing,
    /// Every key in the pipeline's part of the lake, matched or not.
    pub lake: &'a BTreeSet<String>,
    /// What lies under the table's prefix and under that of its rejects.
    pub output: &'a Listing,
    /// Only sources whose key starts with it may enter the changed set; `""` for all.
    pub prefix: &'a str,
    pub clean: bool,
}

/// Some partitions can't be rebuilt, since their sources were removed, and wouldn't fit the new layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CleanRunRequired {
    /// In order.
    pub partitions: Vec<String>,
}

/// What a run must do with one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Every source is read and every partition rebuilt: a clean run, or a changed fingerprint.
    pub whole: bool,
    /// Sources in the lake that must be read for their own sake.
    pub changed: BTreeSet<String>,
    /// Sources in the manifest that are sources no more.
    pub removed: BTreeSet<String>,
    /// Partitions that may not hold what the manifest says.
    pub dirty: BTreeSet<String>,
    /// The output has to be put in order although no partition may be dirty: a leftover mark or rejects file.
    pub untidy: bool,
}

/// Whether only a HEAD can tell that a source listed without a tag is what it was when it was read.
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
    pub fn new(now: &Situation<'_>) -> Result<Self, CleanRunRequired> {
        let refingerprinted = now.manifest.is_some_and(|m| m.fingerprint != now.fingerprint);
        if !now.clean && now.manifest.is_some_and(|m| m.layout != now.layout) {
            let partitions = orphans(now);
            if !partitions.is_empty() {
                return Err(CleanRunRequired { partitions });
            }
        }
        let dirty = dirty_partitions(now);
        let dirty_sources = sources_with_dirty_rejects(now);
        let untidy = has_mark(now) || has_stray_rejects(now) || !dirty_sources.is_empty();
        let whole = now.clean || refingerprinted;
        if whole {
            let known = now.manifest.iter().flat_map(|m| m.sources.keys());
            let removed = known.filter(|k| !now.sources.contains_key(*k)).cloned().collect();
            return Ok(Self { whole, changed: now.sources.keys().cloned().collect(), removed, dirty, untidy });
        }
        let prefix = if dirty.is_empty() && !untidy { now.prefix } else { "" };
        let mut plan = Self { whole, changed: BTreeSet::new(), removed: BTreeSet::new(), dirty, untidy };
        for key in differing(now).into_iter().filter(|k| k.starts_with(prefix)).chain(dirty_sources) {
            plan.enter(now, key);
        }
        loop {
            let pulled = plan.pulled(now, &plan.touched(now, &BTreeMap::new()));
            if pulled.is_empty() {
                return Ok(plan);
            }
            pulled.into_iter().for_each(|key| plan.enter(now, key));
        }
    }

    /// Whether the table is as it should be, and nothing has to be read or written.
    pub fn is_nothing(&self, now: &Situation<'_>) -> bool {
        let never_published = now.manifest.is_none() && now.sources.is_empty();
        let unchanged = self.changed.is_empty() && self.removed.is_empty() && self.dirty.is_empty() && !self.untidy;
        unchanged && (!self.whole || never_published)
    }

    /// Whether every partition is rebuilt from sources that are all read as changed, so that nothing has to be known
    /// before building.
    pub fn builds_all(&self, now: &Situation<'_>) -> bool {
        self.whole || now.sources.keys().all(|k| self.changed.contains(k))
    }

    /// The partitions that must be rebuilt or deleted. `has`: those that each changed source feeds, as parsed.
    pub fn touched(&self, now: &Situation<'_>, has: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<String> {
        let mut touched: BTreeSet<String> = self.dirty.clone();
        touched.extend(has.values().flatten().cloned());
        if let Some(manifest) = now.manifest {
            if self.whole {
                touched.extend(manifest.partitions.keys().cloned());
            }
            for key in self.changed.iter().chain(&self.removed) {
                touched.extend(manifest.sources.get(key).iter().flat_map(|s| s.partitions.keys().cloned()));
            }
            let fed = |partition: &&String| {
                let contributors = manifest.contributors(partition);
                contributors.iter().any(|k| self.changed.contains(*k) || self.removed.contains(*k))
            };
            touched.extend(manifest.partitions.keys().filter(fed).cloned());
        }
        touched
    }

    /// Differing sources outside the prefix whose old rows lie in a touched partition: they have to enter too.
    pub fn pulled(&self, now: &Situation<'_>, touched: &BTreeSet<String>) -> BTreeSet<String> {
        let Some(manifest) = now.manifest.filter(|_| !self.whole) else { return BTreeSet::new() };
        let in_touched: BTreeSet<&str> = touched.iter().flat_map(|p| manifest.contributors(p)).collect();
        differing(now)
            .into_iter()
            .filter(|key| !self.changed.contains(key) && !self.removed.contains(key))
            .filter(|key| {
                in_touched.contains(key.as_str())
                    || manifest.sources.get(key).is_some_and(|s| s.partitions.keys().any(|p| touched.contains(p)))
            })
            .collect()
    }

    /// Lets a differing source into the changed set.
    pub fn enter(&mut self, now: &Situation<'_>, key: String) {
        let set = if now.sources.contains_key(&key) { &mut self.changed } else { &mut self.removed };
        set.insert(key);
    }

    /// The unchanged sources with rows in touched partitions: to be read again.
    pub fn contributors(&self, now: &Situation<'_>, touched: &BTreeSet<String>) -> BTreeSet<String> {
        let entries = now.manifest.iter().flat_map(|m| &m.sources);
        entries
            .filter(|(key, _)| now.sources.contains_key(*key) && !self.changed.contains(*key))
            .filter(|(_, entry)| entry.partitions.keys().any(|p| touched.contains(p)))
            .map(|(key, _)| key.clone())
            .collect()
    }
}

/// Sources that are new, other than when they were read, or gone.
fn differing(now: &Situation<'_>) -> BTreeSet<String> {
    let entry = |key: &str| now.manifest.and_then(|m| m.sources.get(key));
    let current = now.sources.iter().filter(|(key, listed)| {
        entry(key).is_none_or(|e| e.size != listed.size || e.etag.is_none() || e.etag != listed.etag)
    });
    let known = now.manifest.iter().flat_map(|m| m.sources.keys());
    let gone = known.filter(|key| !now.sources.contains_key(*key));
    current.map(|(key, _)| key).chain(gone).cloned().collect()
}

/// Partitions named in a mark, and those whose listed files aren't the manifest's.
fn dirty_partitions(now: &Situation<'_>) -> BTreeSet<String> {
    let mut dirty = BTreeSet::new();
    let mut known = BTreeSet::new();
    if let Some(manifest) = now.manifest {
        dirty.extend(manifest.publishing.iter().flat_map(|m| m.partitions.iter().cloned()));
        for (partition, entry) in &manifest.partitions {
            for file in &entry.files {
                known.insert(file.key.as_str());
                if !now.output.get(&file.key).is_some_and(|l| l.is(file.size, file.etag.as_deref())) {
                    dirty.insert(partition.clone());
                }
            }
        }
    }
    let strays = now.output.keys().filter(|key| !known.contains(key.as_str()));
    dirty.extend(strays.filter_map(|key| partition_of(now.table, key)).map(str::to_owned));
    dirty
}

/// Current sources whose rejects file isn't the manifest's, or may not be.
fn sources_with_dirty_rejects(now: &Situation<'_>) -> BTreeSet<String> {
    let Some(manifest) = now.manifest else { return BTreeSet::new() };
    let marked = manifest.publishing.iter().flat_map(|m| &m.rejects);
    let differ = manifest
        .rejects
        .iter()
        .filter(|(_, file)| !now.output.get(&file.key).is_some_and(|l| l.is(file.size, file.etag.as_deref())));
    let all = marked.chain(differ.map(|(source, _)| source));
    all.filter(|source| now.sources.contains_key(*source)).cloned().collect()
}

fn has_mark(now: &Situation<'_>) -> bool {
    now.manifest.is_some_and(|m| m.publishing.is_some())
}

/// Whether there are rejects files that the manifest doesn't know.
fn has_stray_rejects(now: &Situation<'_>) -> bool {
    let known: BTreeSet<&str> = now.manifest.iter().flat_map(|m| m.rejects.values()).map(|f| f.key.as_str()).collect();
    now.output.keys().any(|key| partition_of(now.table, key).is_none() && !known.contains(key.as_str()))
}

/// Published partitions all of whose last contributors were removed from the lake.
fn orphans(now: &Situation<'_>) -> Vec<String> {
    let manifest = now.manifest.into_iter();
    manifest.flat_map(|m| m.partitions.keys().filter(|p| is_orphan(now, m, p))).cloned().collect()
}

/// Whether none of the sources that last fed a published partition is in the lake.
pub(super) fn is_orphan(now: &Situation<'_>, manifest: &Manifest, partition: &str) -> bool {
    manifest.partitions.contains_key(partition)
        && manifest.contributors(partition).iter().all(|source| !now.lake.contains(*source))
}
