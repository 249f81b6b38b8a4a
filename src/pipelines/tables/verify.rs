//! Compares the objects of a table with its manifest.
//!
//! Files are listed and hashed a page at a time, and compared with as many entries at a time as [`ENTRIES_MAX`]: a larger
//! table is listed several times.
//!
//! Must not: write anything.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;

use sha2::{Digest, Sha256};

use super::log_fault::LogFault;
use super::{FoundRoot, Maps, TableError, TableResult, TableStore};
use super::{delta_verify, iceberg_verify};
use crate::domain::digest::hex;
use crate::domain::layout::{
    delta_log_prefix, iceberg_prefix, is_iceberg_object, manifest_key, manifest_log_key, manifest_objects_prefix,
    manifest_retired_key, manifest_root_key, manifest_shard_key, pipeline_prefix, rejects_prefix, table_prefix,
};
use crate::domain::limits::LIST_PAGE_KEYS_MAX;
use crate::domain::table_log::entries::StoredFile;
use crate::domain::table_log::root::{Objects, Owner, Root};
use crate::ports::store::{Bucket, ListPage, ObjectMeta, StoreError};
use crate::sync::parallel_map;

/// Entries of the manifest in memory: some tens of MB.
const ENTRIES_MAX: u64 = 200_000;
/// Files hashed at the same time.
const PARALLEL_HASHES_MAX: usize = 8;
const BUFFER_BYTES: usize = 256 << 10;
/// Attempts to verify a table that runs keep publishing.
const TRIES_MAX: usize = 5;

/// A way in which an object can differ from the manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableFaultKind {
    Missing,
    Changed,
    Unknown,
}

/// An object that doesn't match the manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableFault {
    pub kind: TableFaultKind,
    pub bucket: Bucket,
    pub key: String,
    /// The state that was found instead.
    pub found: String,
    /// The entry of a data file or a file of rejected rows; `None`: an object of the manifest, or unknown.
    pub owner: Option<Owner>,
}

/// Counts of verified objects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Verified {
    /// Files that match the manifest, and their bytes.
    pub files: u64,
    pub bytes: u64,
    pub shards: u64,
    /// Whether part of the manifest can't be read: the table must be rebuilt.
    pub is_broken: bool,
    /// Whether the Delta log doesn't match the manifest and must be recreated.
    pub is_log_broken: bool,
    /// The same, of the Iceberg metadata.
    pub is_iceberg_broken: bool,
}

impl fmt::Display for TableFaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "missing",
            Self::Changed => "changed",
            Self::Unknown => "unknown",
        })
    }
}

/// Compares all objects of a table with its manifest. `report` gets the faults, some at a time.
///
/// # Errors
/// If the store fails, or runs keep publishing the table meanwhile; those of `report`.
pub fn verify<E: From<TableError>>(
    table: &TableStore<'_>,
    report: &mut dyn FnMut(&[TableFault]) -> Result<(), E>,
) -> Result<Verified, E> {
    let mut tries = 0;
    loop {
        let found = table.root()?;
        let FoundRoot::Readable(stored) = &found else {
            if let FoundRoot::Unusable { error, .. } = &found {
                let key = manifest_key(table.slug, table.table);
                report(&[fault(TableFaultKind::Changed, Bucket::Pipelines, key, error.to_string())])?;
            }
            return Ok(Verified { is_broken: matches!(found, FoundRoot::Unusable { .. }), ..Verified::default() });
        };
        let mut verification =
            Verification { table, root: &stored.root, retained: Retained::default(), verified: Verified::default() };
        match verification.run(report) {
            Ok(()) => return Ok(verification.verified),
            Err(Interrupted::Published) if tries < TRIES_MAX => tries += 1,
            Err(Interrupted::Published) => {
                let key = manifest_key(table.slug, table.table);
                let source = std::io::Error::other("runs keep publishing the table; try again later");
                let error = StoreError::Transient { bucket: Bucket::Pipelines, key, operation: "verifying", source };
                return Err(TableError::from(error).into());
            }
            Err(Interrupted::Failed(error)) => return Err(error),
        }
    }
}

/// The result of comparing a published log or metadata with the manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PublishedLog {
    /// The table isn't published.
    Absent,
    Intact,
    /// A run is publishing the table, or died while it did; the next run completes it.
    Pending,
    Broken {
        key: String,
        found: String,
    },
}

/// Compares the Delta log and the Iceberg metadata of a table with its manifest, but not its files.
///
/// # Errors
/// If the store fails, or a shard of the manifest is missing or damaged.
pub fn published_log(table: &TableStore<'_>) -> TableResult<PublishedLog> {
    for _ in 0..=TRIES_MAX {
        let found = table.root()?;
        let is_published = |root: &&Root| root.delta.is_some() || root.iceberg.is_some();
        let Some(root) = found.readable().filter(is_published) else { return Ok(PublishedLog::Absent) };
        if table.needs_recovery()? {
            return Ok(PublishedLog::Pending);
        }
        let compared = match delta_verify::first_fault(table, root) {
            Ok(None) => iceberg_verify::first_fault(table, root),
            fault => fault,
        };
        if matches!(compared, Ok(None)) {
            return Ok(PublishedLog::Intact);
        }
        // Otherwise a run published it meanwhile.
        if table.root()? == found && !table.needs_recovery()? {
            return compared.map(|fault| match fault {
                Some(LogFault { key, is_missing: true, .. }) => {
                    PublishedLog::Broken { key, found: "it is missing".into() }
                }
                Some(LogFault { key, is_missing: false, found }) => PublishedLog::Broken { key, found },
                None => PublishedLog::Intact,
            });
        }
    }
    Ok(PublishedLog::Pending)
}

/// Why a verification ended.
enum Interrupted<E> {
    /// Another root was published.
    Published,
    Failed(E),
}

impl<E: From<TableError>> From<TableError> for Interrupted<E> {
    fn from(error: TableError) -> Self {
        Self::Failed(error.into())
    }
}

/// Objects that earlier commits left for readers of the past.
#[derive(Default)]
struct Retained {
    /// Keys of files, relative to the pipeline's prefix.
    files: BTreeSet<String>,
    /// Keys of objects of the manifest.
    manifest: BTreeSet<String>,
}

struct Verification<'a> {
    table: &'a TableStore<'a>,
    root: &'a Root,
    retained: Retained,
    verified: Verified,
}

type Report<'r, E> = &'r mut dyn FnMut(&[TableFault]) -> Result<(), E>;

impl Verification<'_> {
    fn run<E: From<TableError>>(&mut self, report: Report<'_, E>) -> Result<(), Interrupted<E>> {
        self.retained.add(self.table, self.table.retained(self.root)?);
        self.shards(report)?;
        self.manifest_objects(report)?;
        // Which files there are is not known then.
        if self.verified.is_broken {
            return Ok(());
        }
        let entries = self.root.totals.files + self.root.totals.rejects_files;
        let passes = entries.div_ceil(ENTRIES_MAX).max(1);
        (0..passes).try_for_each(|pass| self.files(pass, passes, report))?;
        self.verified.is_log_broken = self.log(delta_verify::first_fault(self.table, self.root)?, report)?;
        self.verified.is_iceberg_broken = self.log(iceberg_verify::first_fault(self.table, self.root)?, report)?;
        self.iceberg_objects(report)
    }

    /// Reports a fault of the Delta log or the Iceberg metadata, unless a run in progress is about to write to it.
    fn log<E: From<TableError>>(&self, found: Option<LogFault>, report: Report<'_, E>) -> Result<bool, Interrupted<E>> {
        let Some(LogFault { key, is_missing, found }) = found else { return Ok(false) };
        if self.table.needs_recovery()? {
            return Ok(false);
        }
        let kind = if is_missing { TableFaultKind::Missing } else { TableFaultKind::Changed };
        self.report(vec![fault(kind, Bucket::Warehouse, key, found)], report)?;
        Ok(true)
    }

    /// Objects beside the Iceberg metadata that no snapshot has.
    fn iceberg_objects<E: From<TableError>>(&self, report: Report<'_, E>) -> Result<(), Interrupted<E>> {
        let Some(iceberg) = self.root.iceberg.as_ref().filter(|iceberg| !iceberg.is_stale) else { return Ok(()) };
        let prefix = iceberg_prefix(self.table.slug, self.table.table);
        let (present, pipeline) =
            (iceberg_verify::present_names(self.table, self.root)?, pipeline_prefix(self.table.slug));
        // A catalog puts its metadata files there, too.
        let is_known = |key: &str| {
            let name = &key[prefix.len()..];
            (iceberg.catalog.is_some() && !is_iceberg_object(name))
                || present.contains(name)
                || key.strip_prefix(&pipeline).is_some_and(|key| self.retained.files.contains(key))
        };
        self.pages(Bucket::Warehouse, &prefix, |page| {
            let unknown = page.objects.into_iter().map(|object| object.key).filter(|key| !is_known(key));
            let unknown = unknown.map(|key| fault(TableFaultKind::Unknown, Bucket::Warehouse, key, String::new()));
            self.report(unknown.collect(), report)
        })
    }

    fn shards<E: From<TableError>>(&mut self, report: Report<'_, E>) -> Result<(), Interrupted<E>> {
        let (table, root) = (self.table, self.root);
        let mut faults = Vec::new();
        for (name, read) in table.read_shards(root) {
            let key = manifest_shard_key(table.slug, table.table, name);
            match read {
                Ok(()) => self.verified.shards += 1,
                Err(error) if error.is_gone() => {
                    faults.push(fault(TableFaultKind::Missing, Bucket::Pipelines, key, String::new()));
                }
                Err(TableError::Shard { error, .. }) => {
                    faults.push(fault(TableFaultKind::Changed, Bucket::Pipelines, key, error.to_string()));
                }
                Err(error) => return Err(error.into()),
            }
        }
        self.verified.is_broken = !faults.is_empty();
        self.report(faults, report)
    }

    /// Objects of the manifest that nothing names.
    fn manifest_objects<E: From<TableError>>(&self, report: Report<'_, E>) -> Result<(), Interrupted<E>> {
        let (slug, name) = (self.table.slug, self.table.table);
        let known: BTreeSet<String> = self.root.shards().map(|shard| manifest_shard_key(slug, name, shard)).collect();
        let is_known = |key: &str| known.contains(key) || self.retained.manifest.contains(key);
        self.pages(Bucket::Pipelines, &manifest_objects_prefix(slug, name), |page| {
            let unknown = page.objects.into_iter().map(|object| object.key).filter(|key| !is_known(key));
            let unknown = unknown.map(|key| fault(TableFaultKind::Unknown, Bucket::Pipelines, key, String::new()));
            self.report(unknown.collect(), report)
        })
    }

    /// Compares the files of one pass.
    fn files<E: From<TableError>>(
        &mut self,
        pass: u64,
        passes: u64,
        report: Report<'_, E>,
    ) -> Result<(), Interrupted<E>> {
        let is_own = |key: &str| {
            let mut hasher = DefaultHasher::new();
            key.hash(&mut hasher);
            hasher.finish() % passes == pass
        };
        let mut named = self.named(&is_own)?;
        let pipeline = pipeline_prefix(self.table.slug);
        let (mut files, mut bytes) = (0, 0);
        let (slug, name) = (self.table.slug, self.table.table);
        let logs = [delta_log_prefix(slug, name), iceberg_prefix(slug, name)];
        let is_of_log = |key: &str| logs.iter().any(|log| key.starts_with(log));
        for prefix in [table_prefix(slug, name), rejects_prefix(slug, name)] {
            self.pages(Bucket::Warehouse, &prefix, |page| {
                let (mut found, mut faults) = (Vec::new(), Vec::new());
                for object in page.objects {
                    let Some(key) = object.key.strip_prefix(&pipeline) else { continue };
                    // Folder markers of other tools are not files of a table.
                    if key.ends_with('/') || is_of_log(&object.key) || !is_own(key) {
                        continue;
                    }
                    match named.remove(key) {
                        Some((owner, file)) => found.push((object, owner, file)),
                        None if self.retained.files.contains(key) => {}
                        None => {
                            faults.push(fault(TableFaultKind::Unknown, Bucket::Warehouse, object.key, String::new()))
                        }
                    }
                }
                let compared = parallel_map(&found, PARALLEL_HASHES_MAX, |(object, owner, file)| {
                    self.compare(object, owner, file)
                })?;
                for (fault, (_, _, file)) in compared.into_iter().zip(&found) {
                    match fault {
                        Some(fault) => faults.push(fault),
                        None => (files, bytes) = (files + 1, bytes + file.size),
                    }
                }
                self.report(faults, report)
            })?;
        }
        let missing = named.into_iter().map(|(key, (owner, _))| {
            let key = format!("{pipeline}{key}");
            TableFault { owner: Some(owner), ..fault(TableFaultKind::Missing, Bucket::Warehouse, key, String::new()) }
        });
        let mut missing: Vec<TableFault> = missing.collect();
        missing.sort_by(|a, b| a.key.cmp(&b.key));
        self.verified.files += files;
        self.verified.bytes += bytes;
        self.report(missing, report)
    }

    /// The files that one pass is about, as the manifest names them.
    fn named(&self, is_own: &dyn Fn(&str) -> bool) -> TableResult<HashMap<String, (Owner, StoredFile)>> {
        let (maps, mut reader) = (Maps::of(Some(self.root)), self.table.reader());
        let mut named = HashMap::new();
        maps.groups.visit(&mut reader, |key, group| {
            for file in group.files.iter().filter(|file| is_own(&file.key)) {
                named.insert(file.key.clone(), (Owner::Group(key.clone()), file.clone()));
            }
            Ok::<_, TableError>(())
        })?;
        maps.rejects.visit(&mut reader, |source, file| {
            if is_own(&file.key) {
                named.insert(file.key.clone(), (Owner::Rejects(source.clone()), file.clone()));
            }
            Ok::<_, TableError>(())
        })?;
        Ok(named)
    }

    fn compare(&self, object: &ObjectMeta, owner: &Owner, file: &StoredFile) -> TableResult<Option<TableFault>> {
        let fault = |kind, found| TableFault {
            owner: Some(owner.clone()),
            ..fault(kind, Bucket::Warehouse, object.key.clone(), found)
        };
        if object.size != file.size {
            let found = format!("it has {} bytes, expected {}", object.size, file.size);
            return Ok(Some(fault(TableFaultKind::Changed, found)));
        }
        Ok(match self.hash(&object.key)? {
            None => Some(fault(TableFaultKind::Missing, String::new())),
            Some(hash) if hash == file.sha256 => None,
            Some(_) if file.is_marked_lost() => Some(fault(TableFaultKind::Changed, "the next run rebuilds it".into())),
            Some(hash) => {
                Some(fault(TableFaultKind::Changed, format!("its SHA-256 is {hash}, expected {}", file.sha256)))
            }
        })
    }

    fn hash(&self, key: &str) -> TableResult<Option<String>> {
        let mut body = match self.table.store.get(Bucket::Warehouse, key, None) {
            Ok(object) => object.body,
            Err(StoreError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let (mut hash, mut buffer) = (Sha256::new(), vec![0; BUFFER_BYTES]);
        loop {
            match body.read(&mut buffer) {
                Ok(0) => return Ok(Some(hex(&hash.finalize()))),
                Ok(read) => hash.update(&buffer[..read]),
                Err(source) => {
                    let (bucket, key, operation) = (Bucket::Warehouse, key.to_owned(), "reading");
                    return Err(StoreError::Transient { bucket, key, operation, source }.into());
                }
            }
        }
    }

    fn pages<E: From<TableError>>(
        &self,
        bucket: Bucket,
        prefix: &str,
        mut each: impl FnMut(ListPage) -> Result<(), Interrupted<E>>,
    ) -> Result<(), Interrupted<E>> {
        let mut after: Option<String> = None;
        loop {
            let page = self.table.store.list(bucket, prefix, None, after.as_deref(), LIST_PAGE_KEYS_MAX);
            let mut page = page.map_err(TableError::from)?;
            after = page.next.take();
            each(page)?;
            if after.is_none() {
                return Ok(());
            }
        }
    }

    /// Reports faults that remain: not those caused by a run in progress or by a later commit.
    fn report<E: From<TableError>>(
        &self,
        mut faults: Vec<TableFault>,
        report: Report<'_, E>,
    ) -> Result<(), Interrupted<E>> {
        if faults.iter().any(|fault| fault.kind == TableFaultKind::Unknown) {
            let mut own = Retained::default();
            for key in self.table.intents()? {
                if let Some(intent) = self.table.intent(&key)? {
                    own.manifest.insert(manifest_log_key(self.table.slug, self.table.table, intent.fence));
                    own.add(self.table, intent.made);
                    own.add(self.table, intent.retired);
                }
                own.manifest.insert(key);
            }
            let pipeline = pipeline_prefix(self.table.slug);
            faults.retain(|fault| {
                let relative = fault.key.strip_prefix(&pipeline).unwrap_or(&fault.key);
                fault.kind != TableFaultKind::Unknown
                    || !(own.files.contains(relative) || own.manifest.contains(&fault.key))
            });
        }
        if faults.is_empty() {
            return Ok(());
        }
        let present = self.table.root()?;
        if present.readable().is_none_or(|root| (root.sequence, root.fence) != (self.root.sequence, self.root.fence)) {
            return Err(Interrupted::Published);
        }
        report(&faults).map_err(Interrupted::Failed)
    }
}

impl Retained {
    fn add(&mut self, table: &TableStore<'_>, objects: Objects) {
        self.files.extend(objects.files.into_iter().map(|file| file.key));
        let shards = objects.shards.iter().map(|shard| manifest_shard_key(table.slug, table.table, shard));
        self.manifest.extend(shards);
        for sequence in objects.commits {
            let (slug, name) = (table.slug, table.table);
            let keys =
                [manifest_retired_key(slug, name, sequence), manifest_root_key(slug, name, sequence.saturating_sub(1))];
            self.manifest.extend(keys);
        }
    }
}

fn fault(kind: TableFaultKind, bucket: Bucket, key: String, found: String) -> TableFault {
    TableFault { kind, bucket, key, found, owner: None }
}
