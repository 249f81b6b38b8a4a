//! The events of a body, and the parts of them that S3's and EventBridge's have in common.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;

use crate::domain::job::ChangedKeys;
use crate::domain::layout::split_key;
use crate::domain::name::Slug;

/// The events of a body.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventSummary {
    /// The new objects of each pipeline.
    pub changes: BTreeMap<Slug, ChangedKeys>,
    /// Events of new objects in the lake.
    pub accepted: u64,
    /// Other events, and those of other buckets and keys.
    pub ignored: u64,
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
    /// Adds a new object of the lake's bucket. `is_certain`: whether `key` is known to be the stored one.
    pub(super) fn add(&mut self, key: &str, is_certain: bool) {
        let Some((slug, key)) = split_key(key) else {
            self.ignored += 1;
            return;
        };
        self.accepted += 1;
        let changed = self.changes.entry(slug).or_insert_with(ChangedKeys::none);
        if is_certain { changed.insert(key) } else { *changed = ChangedKeys::All }
    }
}
