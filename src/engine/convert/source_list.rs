//! The sources of a run in key order, in little more memory than their keys and ETags take.

use std::sync::Arc;

use super::conversion::SourceRef;
use super::text_list::TextList;
use crate::ports::store::ETag;

/// Sources in key order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SourceList {
    keys: Arc<TextList>,
    /// An empty text means that there is no ETag.
    etags: TextList,
    sizes: Vec<u64>,
}

impl SourceList {
    /// Adds a source after all others.
    pub fn push(&mut self, source: &SourceRef) {
        Arc::make_mut(&mut self.keys).push(&source.key);
        self.etags.push(source.etag.as_ref().map_or("", |etag| &etag.0));
        self.sizes.push(source.size);
    }

    pub fn len(&self) -> usize {
        self.sizes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.sizes.is_empty()
    }

    pub fn keys(&self) -> &Arc<TextList> {
        &self.keys
    }

    /// Bytes of all sources as stored.
    pub fn bytes(&self) -> u64 {
        self.sizes.iter().copied().fold(0, u64::saturating_add)
    }

    pub fn get(&self, at: usize) -> Option<SourceRef> {
        let size = *self.sizes.get(at)?;
        let etag = Some(self.etags.get(at)).filter(|etag| !etag.is_empty()).map(|etag| ETag(etag.to_owned()));
        Some(SourceRef { key: self.keys.get(at).to_owned(), etag, size })
    }

    /// The source with a key.
    pub fn find(&self, key: &str) -> Option<SourceRef> {
        self.keys.position(key).and_then(|at| self.get(at))
    }

    pub fn iter(&self) -> impl Iterator<Item = SourceRef> + '_ {
        (0..self.len()).filter_map(|at| self.get(at))
    }

    /// With more sources.
    #[must_use]
    pub fn with(&self, more: &Self) -> Self {
        let mut all: Vec<SourceRef> = self.iter().chain(more.iter()).collect();
        all.sort_by(|a, b| a.key.cmp(&b.key));
        all.iter().collect()
    }
}

impl<'a> FromIterator<&'a SourceRef> for SourceList {
    fn from_iter<I: IntoIterator<Item = &'a SourceRef>>(sources: I) -> Self {
        let mut list = Self::default();
        sources.into_iter().for_each(|source| list.push(source));
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(key: &str, etag: Option<&str>) -> SourceRef {
        SourceRef { key: key.to_owned(), etag: etag.map(|etag| ETag(etag.to_owned())), size: key.len() as u64 }
    }

    #[test]
    fn sources_are_those_that_were_added() {
        let all = [source("a", Some("1")), source("bb", None), source("ccc", Some("3"))];
        let list: SourceList = all.iter().collect();
        assert_eq!(list.iter().collect::<Vec<_>>(), all);
        assert_eq!((list.len(), list.bytes(), list.get(3)), (3, 6, None));
        assert_eq!(list.find("bb"), Some(all[1].clone()));
        assert_eq!((list.find(""), list.find("b"), list.find("d")), (None, None, None));
        let more: SourceList = [source("b", None)].iter().collect();
        assert_eq!(list.with(&more).keys().iter().collect::<Vec<_>>(), ["a", "b", "bb", "ccc"]);
    }
}
