//! A table's manifest, read whole.

use std::collections::{BTreeMap, BTreeSet};

use lakemill::domain::name::Slug;
use lakemill::domain::table_log::entries::{GroupEntry, Members, RangeKey, SourceEntry, StoredFile};
use lakemill::domain::table_log::root::Root;
use lakemill::pipelines::tables::{FoundRoot, Maps, TableStore};
use lakemill::ports::ObjectStore;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    pub root: Root,
    pub sources: BTreeMap<String, SourceEntry>,
    pub groups: BTreeMap<RangeKey, GroupEntry>,
    pub members: BTreeMap<RangeKey, Members>,
    pub rejects: BTreeMap<String, StoredFile>,
}

impl Manifest {
    /// The present manifest of a table; `None` if it has none.
    pub fn read(store: &dyn ObjectStore, slug: &Slug, table: &str) -> Option<Self> {
        let table = TableStore { store, slug, table };
        match table.root().unwrap() {
            FoundRoot::Absent => None,
            FoundRoot::Readable(stored) => Some(Self::of(&table, stored.root)),
            FoundRoot::Unusable { error, .. } => panic!("{error}"),
        }
    }

    /// The manifest with this root.
    pub fn of(table: &TableStore<'_>, root: Root) -> Self {
        let (maps, mut reader) = (Maps::of(Some(&root)), table.reader());
        Self {
            sources: maps.sources.entries(&mut reader).map(Result::unwrap).collect(),
            groups: maps.groups.entries(&mut reader).map(Result::unwrap).collect(),
            members: maps.members.entries(&mut reader).map(Result::unwrap).collect(),
            rejects: maps.rejects.entries(&mut reader).map(Result::unwrap).collect(),
            root,
        }
    }

    /// All its files, those of rejected rows too.
    pub fn files(&self) -> impl Iterator<Item = &StoredFile> {
        self.groups.values().flat_map(|group| &group.files).chain(self.rejects.values())
    }

    pub fn rows(&self) -> u64 {
        self.groups.values().flat_map(|group| &group.files).map(|file| file.rows).sum()
    }

    pub fn partitions(&self) -> BTreeSet<&str> {
        self.groups.keys().map(|key| key.partition.as_str()).collect()
    }

    /// The sources of each segment of a group, in order.
    pub fn members_of(&self, key: &RangeKey) -> Vec<&str> {
        let segments = &self.groups[key].segments;
        let members = segments.iter().flat_map(|s| &self.members[&RangeKey::new(&key.partition, &s.first)]);
        members.map(|member| member.source.as_str()).collect()
    }
}
