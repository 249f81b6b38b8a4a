//! Keys of a pipeline's CSVs that may have changed, as named by events.
//!
//! They are hints. A key that did not change costs a check. A key that no event named is found by the next comparison
//! of the whole listing.

use std::collections::BTreeSet;

use crate::domain::limits::{CHANGED_KEYS_BYTES_MAX, CHANGED_KEYS_MAX, KEY_BYTES_MAX};

/// The keys that a run checks, relative to the pipeline's prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangedKeys {
    /// Any key may have changed: the run compares the whole listing.
    All,
    /// Only these keys were created, replaced or removed.
    Only(BTreeSet<String>),
}

impl ChangedKeys {
    /// No key.
    pub const fn none() -> Self {
        Self::Only(BTreeSet::new())
    }

    /// Adds a key. An empty or overlong key identifies no object and is treated as all keys.
    pub fn insert(&mut self, key: &str) {
        let Self::Only(keys) = self else { return };
        if key.is_empty() || key.len() > KEY_BYTES_MAX {
            *self = Self::All;
        } else if !keys.contains(key) {
            keys.insert(key.to_owned());
        }
    }

    /// Adds the keys of `other`.
    pub fn merge(&mut self, other: Self) {
        match (self, other) {
            (Self::All, _) => {}
            (own, Self::All) => *own = Self::All,
            (Self::Only(keys), Self::Only(more)) => keys.extend(more),
        }
    }

    /// All keys, if there are more than [`CHANGED_KEYS_MAX`] or they have more than [`CHANGED_KEYS_BYTES_MAX`].
    #[must_use]
    pub fn bounded(self) -> Self {
        match self {
            Self::Only(keys) if fit(keys.len(), keys.iter().map(String::len).sum()) => Self::Only(keys),
            Self::Only(_) | Self::All => Self::All,
        }
    }
}

/// Whether this number of keys, with these total bytes, is within the limits.
pub const fn fit(keys: usize, bytes: usize) -> bool {
    keys <= CHANGED_KEYS_MAX && bytes <= CHANGED_KEYS_BYTES_MAX
}

impl<'a> FromIterator<&'a str> for ChangedKeys {
    fn from_iter<I: IntoIterator<Item = &'a str>>(keys: I) -> Self {
        let mut changed = Self::none();
        keys.into_iter().for_each(|key| changed.insert(key));
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_keys_are_those_of_both() {
        let merged = |a: ChangedKeys, b: ChangedKeys| {
            let mut merged = a;
            merged.merge(b);
            merged
        };
        let of = |keys: &[&str]| keys.iter().copied().collect::<ChangedKeys>();
        assert_eq!(merged(of(&["a", "b"]), of(&["b", "c"])), of(&["a", "b", "c"]));
        assert_eq!(merged(ChangedKeys::All, of(&["a"])), ChangedKeys::All);
        assert_eq!(merged(of(&["a"]), ChangedKeys::All), ChangedKeys::All);
    }

    #[test]
    fn unusable_keys_mean_all_keys() {
        let long = "x".repeat(KEY_BYTES_MAX + 1);
        for key in ["", long.as_str()] {
            assert_eq!(ChangedKeys::from_iter(["a.csv", key, "b.csv"]), ChangedKeys::All);
        }
        let longest = "x".repeat(KEY_BYTES_MAX);
        assert!(matches!(ChangedKeys::from_iter([longest.as_str()]), ChangedKeys::Only(keys) if keys.len() == 1));
    }

    #[test]
    fn keys_above_the_limits_mean_all_keys() {
        let keys: Vec<String> = (0..=CHANGED_KEYS_MAX).map(|n| n.to_string()).collect();
        let changed = |keys: &[String]| keys.iter().map(String::as_str).collect::<ChangedKeys>().bounded();
        assert!(matches!(changed(&keys[1..]), ChangedKeys::Only(_)));
        assert_eq!(changed(&keys), ChangedKeys::All);
        let long: Vec<String> = (0..CHANGED_KEYS_BYTES_MAX / 1_024).map(|n| format!("{n:01024}")).collect();
        assert!(matches!(changed(&long), ChangedKeys::Only(_)));
        assert_eq!(changed(&[long, vec!["x".into()]].concat()), ChangedKeys::All);
    }
}
