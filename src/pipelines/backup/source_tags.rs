//! The tags that restored CSVs have in the store, for the manifests of their tables: a run then reads none of them again.

use std::iter::Peekable;
use std::vec::IntoIter;

use super::error::{BackupError, BackupResult};
use crate::domain::backup::BackupObject;
use crate::domain::limits::LIST_PAGE_KEYS_MAX;
use crate::domain::table_log::entries::SourceEntry;
use crate::ports::ObjectStore;
use crate::ports::store::{Bucket, ObjectMeta};

/// Merges the entries of the backup with a listing of the lake; both are in the order of keys.
pub(super) struct SourceTags<'a, B> {
    store: &'a dyn ObjectStore,
    /// The pipeline's prefix.
    prefix: String,
    backup: B,
    current: Option<(String, BackupObject)>,
    page: Peekable<IntoIter<ObjectMeta>>,
    after: Option<String>,
    is_listed: bool,
}

impl<'a, B: Iterator<Item = BackupResult<(String, BackupObject)>>> SourceTags<'a, B> {
    pub(super) fn new(store: &'a dyn ObjectStore, prefix: String, backup: B) -> Self {
        let page = Vec::new().into_iter().peekable();
        Self { store, prefix, backup, current: None, page, after: None, is_listed: false }
    }

    /// The tag of a source, if it has the bytes that the manifest describes. Sources are asked for in order.
    pub(super) fn tag(&mut self, source: &str, entry: &SourceEntry) -> BackupResult<Option<String>> {
        let key = format!("{}{source}", self.prefix);
        let is_same = |object: &BackupObject| object.size == entry.size && object.sha256 == entry.sha256;
        if !self.in_backup(&key)?.is_some_and(is_same) {
            return Ok(None);
        }
        let Some(listed) = self.listed(&key)?.filter(|listed| listed.size == entry.size) else { return Ok(None) };
        match listed.etag {
            Some(etag) => Ok(Some(etag.0)),
            None => Ok(self.store.head(Bucket::Lake, &key)?.and_then(|found| found.etag).map(|etag| etag.0)),
        }
    }

    fn in_backup(&mut self, key: &str) -> BackupResult<Option<&BackupObject>> {
        while self.current.as_ref().is_none_or(|(found, _)| found.as_str() < key) {
            match self.backup.next() {
                Some(next) => self.current = Some(next?),
                None => return Ok(None),
            }
        }
        Ok(self.current.as_ref().filter(|(found, _)| found == key).map(|(_, object)| object))
    }

    fn listed(&mut self, key: &str) -> BackupResult<Option<ObjectMeta>> {
        loop {
            while let Some(object) = self.page.next_if(|object| object.key.as_str() <= key) {
                if object.key == key {
                    return Ok(Some(object));
                }
            }
            if self.page.peek().is_some() || self.is_listed {
                return Ok(None);
            }
            let after = self.after.take();
            let page = self.store.list(Bucket::Lake, &self.prefix, None, after.as_deref(), LIST_PAGE_KEYS_MAX);
            let page = page.map_err(BackupError::from)?;
            self.page = page.objects.into_iter().peekable();
            self.is_listed = page.next.is_none();
            self.after = page.next;
        }
    }
}
