//! The events of a body, and the parts of them that S3's and EventBridge's have in common.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;

use crate::domain::job::ChangedKeys;
use crate::domain::layout::split_key;
use crate::domain::name::Slug;
use crate::domain::text::clipped;

/// The events of a body.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventSummary {
    /// The new objects of each pipeline.
    pub changes: BTreeMap<Slug, ChangedKeys>,
    /// Events of new objects in the lake.
    pub accepted: u64,
    /// Other events, and those of other buckets and keys.
    pub ignored: u64,
    /// Events of the lake's bucket, whatever they are.
    pub of_lake: u64,
    /// A bucket other than the lake's, if events named one.
    pub other_bucket: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct EventBucket<'a> {
    #[serde(borrow)]
    pub(super) name: Cow<'a, str>,
}

#[derive(Debug, Deserialize)]
pub(super) struct EventObject<'a> {
    #[serde(borrow)]
    pub(super) key: Cow<'a, str>,
}

impl EventSummary {
    /// Adds the events of `other`.
    pub fn merge(&mut self, other: Self) {
        for (pipeline, keys) in other.changes {
            self.changes.entry(pipeline).or_insert_with(ChangedKeys::none).merge(keys);
        }
        self.accepted += other.accepted;
        self.ignored += other.ignored;
        self.of_lake += other.of_lake;
        self.other_bucket = self.other_bucket.take().or(other.other_bucket);
    }

    /// Adds an event of another bucket.
    pub(super) fn ignore_bucket(&mut self, bucket: &str) {
        self.ignored += 1;
        self.other_bucket.get_or_insert_with(|| clipped(bucket));
    }

    /// Adds an event of the lake that isn't about a new object.
    pub(super) fn ignore_kind(&mut self) {
        self.ignored += 1;
        self.of_lake += 1;
    }

    /// Adds a new object of the lake's bucket. `is_certain`: whether `key` is known to be the stored one.
    pub(super) fn add(&mut self, key: &str, is_certain: bool) {
        self.of_lake += 1;
        let Some((slug, key)) = split_key(key) else {
            self.ignored += 1;
            return;
        };
        self.accepted += 1;
        let changed = self.changes.entry(slug).or_insert_with(ChangedKeys::none);
        if is_certain { changed.insert(key) } else { *changed = ChangedKeys::All }
    }
}
