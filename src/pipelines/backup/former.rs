//! The entries of an earlier backup, read beside a sorted listing.

use std::iter::Peekable;

use super::error::BackupResult;

type Entries<'m, V> = Box<dyn Iterator<Item = BackupResult<(String, V)>> + 'm>;

/// One of its three maps, in the order of keys.
pub(super) struct FormerEntries<'m, V> {
    entries: Peekable<Entries<'m, V>>,
}

impl<'m, V> FormerEntries<'m, V> {
    pub(super) fn new(entries: impl Iterator<Item = BackupResult<(String, V)>> + 'm) -> Self {
        Self { entries: (Box::new(entries) as Entries<'m, V>).peekable() }
    }

    /// The entry of `key`. The entries before it are passed to `skipped`.
    pub(super) fn take(&mut self, key: &str, skipped: &mut dyn FnMut(String, V)) -> BackupResult<Option<V>> {
        while let Some((found, value)) = self.next_until(key)? {
            if found == key {
                return Ok(Some(value));
            }
            skipped(found, value);
        }
        Ok(None)
    }

    /// The next entry whose key is at most `key`.
    fn next_until(&mut self, key: &str) -> BackupResult<Option<(String, V)>> {
        let is_later = |next: &BackupResult<(String, V)>| next.as_ref().is_ok_and(|(found, _)| found.as_str() > key);
        if self.entries.peek().is_none_or(is_later) { Ok(None) } else { self.entries.next().transpose() }
    }

    pub(super) fn next(&mut self) -> BackupResult<Option<(String, V)>> {
        self.entries.next().transpose()
    }
}
