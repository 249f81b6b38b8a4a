//! A table's manifest with all its shards.

use std::collections::{BTreeMap, BTreeSet};

use lakemill::domain::digest::sha256_hex;
use lakemill::domain::layout::{manifest_key, manifest_shard_key, pipeline_prefix};
use lakemill::domain::name::Slug;
use lakemill::domain::table_log::entries::{GroupEntry, Members, RangeKey, SourceEntry, StoredFile};
use lakemill::domain::table_log::root::Root;
use lakemill::domain::table_log::shards::ShardRef;
use lakemill::pipelines::tables::{FoundRoot, Maps, TableResult, TableStore};
use lakemill::ports::ObjectStore;
use lakemill::ports::store::{Bucket, WriteOptions};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    pub root: Root,
    pub sources: BTreeMap<String, SourceEntry>,
    pub groups: BTreeMap<RangeKey, GroupEntry>,
    pub members: BTreeMap<RangeKey, Members>,
    pub rejects: BTreeMap<String, StoredFile>,
}

impl Manifest {
    /// The current manifest of a table, if any.
    pub fn read(store: &dyn ObjectStore, slug: &Slug, table: &str) -> Option<Self> {
        Self::try_read(store, slug, table).unwrap()
    }

    /// Like [`Manifest::read`]; an error if a shard is missing or differs from the root's entry.
    pub fn try_read(store: &dyn ObjectStore, slug: &Slug, table: &str) -> TableResult<Option<Self>> {
        let table = TableStore::new(store, slug, table);
        match table.root()? {
            FoundRoot::Absent => Ok(None),
            FoundRoot::Readable(stored) => Self::try_of(&table, stored.root).map(Some),
            FoundRoot::Unusable { error, .. } => panic!("{error}"),
        }
    }

    /// The manifest with this root.
    pub fn try_of(table: &TableStore<'_>, root: Root) -> TableResult<Self> {
        let (maps, mut reader) = (Maps::of(Some(&root)), table.reader());
        Ok(Self {
            sources: maps.sources.entries(&mut reader).collect::<TableResult<_>>()?,
            groups: maps.groups.entries(&mut reader).collect::<TableResult<_>>()?,
            members: maps.members.entries(&mut reader).collect::<TableResult<_>>()?,
            rejects: maps.rejects.entries(&mut reader).collect::<TableResult<_>>()?,
            root,
        })
    }

    /// All its files, including those of rejected rows.
    pub fn files(&self) -> impl Iterator<Item = &StoredFile> {
        self.groups.values().flat_map(|group| &group.files).chain(self.rejects.values())
    }

    /// The first data file of a partition, by its key relative to the pipeline's prefix.
    pub fn file_in(&self, partition: &str) -> String {
        let mut groups = self.groups.iter().filter(|(key, _)| key.partition == partition);
        groups.next().unwrap().1.files[0].key.clone()
    }

    pub fn rows(&self) -> u64 {
        self.groups.values().flat_map(|group| &group.files).map(|file| file.rows).sum()
    }

    pub fn partitions(&self) -> BTreeSet<&str> {
        self.groups.keys().map(|key| key.partition.as_str()).collect()
    }
}

/// Replaces a data file and its entry in the manifest, as an import can.
pub fn replace_file(store: &dyn ObjectStore, slug: &Slug, table: &str, key: &str, bytes: &[u8]) {
    let options = WriteOptions::default();
    store.put(Bucket::Warehouse, &format!("{}{key}", pipeline_prefix(slug)), bytes, &options).unwrap();
    let of = TableStore::new(store, slug, table);
    let FoundRoot::Readable(mut stored) = of.root().unwrap() else { panic!("`{table}` has no manifest") };
    let mut maps = Maps::of(Some(&stored.root));
    let groups = Manifest::try_of(&of, stored.root.clone()).unwrap().groups;
    let is_of = |group: &GroupEntry| group.files.iter().any(|file| file.key == key);
    let (range, mut group) = groups.into_iter().find(|(_, group)| is_of(group)).unwrap();
    for file in group.files.iter_mut().filter(|file| file.key == key) {
        (file.size, file.sha256) = (bytes.len() as u64, sha256_hex(bytes));
    }
    maps.groups.set(range, Some(group), &mut of.reader()).unwrap();
    let mut sink = |shard: &ShardRef<RangeKey>, bytes: Vec<u8>| {
        store.put(Bucket::Pipelines, &manifest_shard_key(slug, table, &shard.name), &bytes, &options).map(drop)
    };
    stored.root.groups = maps.groups.rewrite(&mut sink).unwrap();
    store.put(Bucket::Pipelines, &manifest_key(slug, table), &stored.root.to_json(), &options).unwrap();
}
