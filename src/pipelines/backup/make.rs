//! Makes a backup.
//!
//! The pipelines bucket is copied first, each table with its files, then the lake: so the lake's copy has every CSV that
//! the tables' copy was made of, unless it was removed meanwhile.

use std::collections::BTreeSet;

use chrono::{DateTime, NaiveDateTime, TimeDelta, Utc};
use parking_lot::Mutex;

use super::error::{BackupError, BackupResult};
use super::former::FormerEntries;
use super::known::KnownData;
use super::objects::{IndexMap, WrittenMap};
use super::place::BackupPlace;
use super::sweep::{NamedData, delete};
use super::table::{CopiedTable, copy_table};
use super::transfer::{BackupTransfers, TransferWatch};
use crate::domain::backup::{BACKUP_VERSION, BackupObject, BackupRoot, BackupTable};
use crate::domain::file_tag;
use crate::domain::layout::{
    PIPELINES_PREFIX, SETTINGS_KEY, backup_root_key, manifests_prefix, pipeline_prefix, run_lock_key, split_key,
};
use crate::domain::limits::LIST_PAGE_KEYS_MAX;
use crate::domain::name::Slug;
use crate::domain::table_log::shards::ShardedMap;
use crate::pipelines;
use crate::pipelines::tables::TableStore;
use crate::ports::ObjectStore;
use crate::ports::store::{Bucket, ObjectMeta, StoreError};
use crate::runtime::failpoint::reach;
use crate::runtime::{Clock, rfc3339};

/// Passes over the store while pipelines are renamed or deleted.
const PASSES_MAX: usize = 3;
/// Problems that are named.
const PROBLEMS_MAX: usize = 1_000;

/// The pipelines and parts to back up, and the options.
pub struct BackupRequest<'a> {
    pub source: &'a dyn ObjectStore,
    pub place: BackupPlace<'a>,
    /// Empty: all. The place keeps the others as they are in its newest backup.
    pub pipelines: &'a BTreeSet<Slug>,
    pub without_csvs: bool,
    pub without_tables: bool,
    /// Copies every object again, even if the place has it.
    pub is_full: bool,
    /// Backups that stay in the place, this one included.
    pub keep: usize,
    pub clock: &'a dyn Clock,
    pub watch: TransferWatch<'a>,
}

/// A finished backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupOutcome {
    pub root: BackupRoot,
    /// Objects that it lacks, or has in an earlier state, and why.
    pub problems: Vec<String>,
    /// Backups and objects that were deleted.
    pub deleted_backups: usize,
    pub deleted_objects: u64,
    /// Why nothing was deleted.
    pub not_deleted: Option<String>,
}

/// Makes a backup. The caller holds the lock of the place.
///
/// # Errors
/// If the store or the place fails, or `watch` stops it; earlier backups are as they were.
pub fn make(request: &BackupRequest<'_>) -> BackupResult<BackupOutcome> {
    let place = request.place;
    let ids = place.backups()?;
    let former = ids.last().map(|id| place.root(id)).transpose()?;
    let began = request.clock.now();
    let id = new_id(began, ids.last().map(String::as_str));
    let known = KnownData::read(&place)?;
    let transfers = BackupTransfers::new(request.source, place, request.watch, known, request.is_full);
    let mut pass = 0;
    let (maps, problems) = loop {
        pass += 1;
        let before = pipelines::all(request.source)?;
        let copy = Copy {
            request,
            transfers: &transfers,
            former: former.as_ref(),
            former_began: began_at(former.as_ref()),
            problems: Mutex::default(),
        };
        let maps = copy.run()?;
        let after = pipelines::all(request.source)?;
        // A pipeline that was renamed meanwhile may be under neither of its names.
        if before.is_subset(&after) || pass == PASSES_MAX {
            break (maps, copy.problems.into_inner());
        }
    };
    place.sync(maps.plain.shards.len() + maps.tables.shards.len() + maps.lake.shards.len())?;
    let root = BackupRoot {
        version: BACKUP_VERSION,
        id,
        began_at: rfc3339(began),
        lakemill: env!("CARGO_PKG_VERSION").to_owned(),
        without_csvs: request.without_csvs,
        without_tables: request.without_tables,
        objects: maps.plain.objects + maps.tables.objects + maps.lake.objects,
        bytes: maps.plain.bytes + maps.tables.bytes + maps.lake.bytes,
        plain: maps.plain.shards,
        tables: maps.tables.shards,
        lake: maps.lake.shards,
    };
    let mut named = NamedData::default();
    named.add(&place, &root)?;
    let missing = named.missing(&transfers.known, &transfers.take_added());
    if missing > 0 {
        return Err(BackupError::Refused(format!(
            "the place lacks the data of {missing} objects that its newest backup has: repeat with --full"
        )));
    }
    reach("backup::before_root");
    place.put_root(&root)?;
    reach("backup::after_root");
    let mut outcome = BackupOutcome { root, problems, deleted_backups: 0, deleted_objects: 0, not_deleted: None };
    request.clean_up(&ids, named, &transfers.known, &mut outcome)?;
    Ok(outcome)
}

impl BackupRequest<'_> {
    /// Deletes old backups, then what no other names.
    fn clean_up(
        &self,
        ids: &[String],
        mut named: NamedData,
        known: &KnownData,
        outcome: &mut BackupOutcome,
    ) -> BackupResult<()> {
        let place = &self.place;
        let (old, kept) = ids.split_at(ids.len().saturating_sub(self.keep.saturating_sub(1)));
        for id in kept {
            let added = place.root(id).and_then(|root| named.add(place, &root));
            match added {
                Ok(()) => {}
                // What it names is not known then.
                Err(
                    error @ (BackupError::Root { .. }
                    | BackupError::Shard(_)
                    | BackupError::Place(StoreError::NotFound { .. })),
                ) => {
                    outcome.not_deleted = Some(error.to_string());
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        let keys: Vec<String> = old.iter().map(|id| backup_root_key(place.slug, id)).collect();
        delete(place, &keys)?;
        outcome.deleted_backups = keys.len();
        reach("backup::before_sweep");
        outcome.deleted_objects = named.delete_others(place, known)?;
        Ok(())
    }
}

/// The maps of the index.
#[derive(Default)]
struct Maps {
    plain: WrittenMap,
    tables: WrittenMap,
    lake: WrittenMap,
}

/// One pass over the store.
struct Copy<'a> {
    request: &'a BackupRequest<'a>,
    transfers: &'a BackupTransfers<'a>,
    former: Option<&'a BackupRoot>,
    former_began: DateTime<Utc>,
    problems: Mutex<Vec<String>>,
}

impl Copy<'_> {
    fn run(&self) -> BackupResult<Maps> {
        let mut maps = Maps::default();
        self.pipelines(&mut maps)?;
        reach("backup::before_lake");
        self.lake(&mut maps)?;
        Ok(maps)
    }

    /// The prefixes whose objects are looked at, in order.
    fn scope(&self) -> Vec<String> {
        match self.request.pipelines.is_empty() {
            true => vec![PIPELINES_PREFIX.to_owned()],
            false => {
                let mut prefixes: Vec<String> = self.request.pipelines.iter().map(pipeline_prefix).collect();
                prefixes.sort();
                prefixes
            }
        }
    }

    fn pipelines(&self, maps: &mut Maps) -> BackupResult<()> {
        let (mut scope, place) = (self.scope(), &self.request.place);
        if self.request.pipelines.is_empty() {
            scope.push(SETTINGS_KEY.to_owned());
        }
        let is_in_scope = |key: &str| scope.iter().any(|prefix| key.starts_with(prefix));
        let former_plain = ShardedMap::<String, BackupObject>::new(self.former.map_or(&[][..], |root| &root.plain));
        let former_tables = ShardedMap::<String, BackupTable>::new(self.former.map_or(&[][..], |root| &root.tables));
        let (mut plain_reader, mut table_reader) = (place.reader(), place.reader());
        let mut plain =
            IndexMap::<BackupObject>::new(FormerEntries::new(former_plain.entries(&mut plain_reader)), &is_in_scope);
        let mut tables = IndexMap::new(FormerEntries::new(former_tables.entries(&mut table_reader)), &is_in_scope);
        let has_tables = !self.request.without_tables;
        for prefix in &scope {
            self.pages(Bucket::Pipelines, prefix, &mut |objects| {
                for object in objects {
                    match kind_of(&object.key) {
                        ObjectKind::Root if has_tables => tables.list(object)?,
                        ObjectKind::Plain => plain.list(object)?,
                        ObjectKind::Root | ObjectKind::Other => {}
                    }
                }
                plain.flush(self.transfers, &|object, former| self.object(Bucket::Pipelines, object, former))?;
                tables.flush(self.transfers, &|object, former| self.table(object, former))
            })?;
        }
        maps.plain = plain.finish(self.transfers)?;
        maps.tables = tables.finish(self.transfers)?;
        Ok(())
    }

    fn lake(&self, maps: &mut Maps) -> BackupResult<()> {
        let (scope, place) = (self.scope(), &self.request.place);
        let is_in_scope = |key: &str| scope.iter().any(|prefix| key.starts_with(prefix));
        let former = ShardedMap::<String, BackupObject>::new(self.former.map_or(&[][..], |root| &root.lake));
        let mut reader = place.reader();
        let mut lake = IndexMap::<BackupObject>::new(FormerEntries::new(former.entries(&mut reader)), &is_in_scope);
        for prefix in scope.iter().filter(|_| !self.request.without_csvs) {
            self.pages(Bucket::Lake, prefix, &mut |objects| {
                let mut objects = objects.into_iter().filter(|object| split_key(&object.key).is_some());
                objects.try_for_each(|object| lake.list(object))?;
                lake.flush(self.transfers, &|object, former| self.source(object, former))
            })?;
        }
        maps.lake = lake.finish(self.transfers)?;
        Ok(())
    }

    fn pages(
        &self,
        bucket: Bucket,
        prefix: &str,
        each: &mut dyn FnMut(Vec<ObjectMeta>) -> BackupResult<()>,
    ) -> BackupResult<()> {
        let mut after: Option<String> = None;
        loop {
            let page = self.request.source.list(bucket, prefix, None, after.as_deref(), LIST_PAGE_KEYS_MAX)?;
            for name in &page.skipped {
                self.problem(format!("{bucket} bucket: `{name}` is not a valid key; it is not in the backup"));
            }
            each(page.objects)?;
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(()),
            }
        }
    }

    fn problem(&self, text: String) {
        let mut problems = self.problems.lock();
        if problems.len() < PROBLEMS_MAX {
            problems.push(text);
        }
    }

    /// An object of the lake.
    fn source(&self, object: &ObjectMeta, former: Option<&BackupObject>) -> BackupResult<Option<BackupObject>> {
        if self.is_unchanged(object, former) {
            return Ok(former.cloned());
        }
        if self.request.source.is_being_written(Bucket::Lake, &object.key)? {
            let has = if former.is_some() { "its earlier state is" } else { "it is not" };
            self.problem(format!("lake bucket: `{}` is being written; {has} in the backup", object.key));
            return Ok(former.cloned());
        }
        self.object(Bucket::Lake, object, former)
    }

    fn object(
        &self,
        bucket: Bucket,
        object: &ObjectMeta,
        former: Option<&BackupObject>,
    ) -> BackupResult<Option<BackupObject>> {
        if self.is_unchanged(object, former) {
            return Ok(former.cloned());
        }
        // Some listings have no tags.
        if object.etag.is_none()
            && let Some(found) = self.request.source.head(bucket, &object.key)?
            && self.is_unchanged(&found, former)
        {
            return Ok(former.cloned());
        }
        match self.transfers.copy(bucket, &object.key, None) {
            Err(error @ BackupError::DamagedSource { .. }) => {
                self.problem(format!("{bucket} bucket: {error}"));
                Ok(former.cloned())
            }
            copied => copied,
        }
    }

    /// Whether the former backup has the object in its present state, and the place has its data.
    fn is_unchanged(&self, object: &ObjectMeta, former: Option<&BackupObject>) -> bool {
        let (Some(former), Some(etag)) = (former, &object.etag) else { return false };
        former.etag.as_ref() == Some(&etag.0)
            && former.size == object.size
            && !self.request.is_full
            && !file_tag::may_hide_a_change(&etag.0, self.former_began)
            && self.transfers.known.has_object(former)
    }

    fn table(&self, object: &ObjectMeta, former: Option<&BackupTable>) -> BackupResult<Option<BackupTable>> {
        let etag = former.and_then(|table| table.root.etag.as_deref());
        let is_unchanged = etag.is_some() && etag == object.etag.as_ref().map(|etag| etag.0.as_str());
        if is_unchanged && !self.request.is_full {
            return Ok(former.cloned());
        }
        let Some((slug, relative)) = split_key(&object.key) else { return Ok(None) };
        let name = relative.strip_prefix("manifests/").and_then(|name| name.strip_suffix(".json"));
        let Some(name) = name else { return Ok(None) };
        let table = TableStore::new(self.request.source, &slug, name);
        match copy_table(self.transfers, &table, &object.key)? {
            CopiedTable::Copied(table) => Ok(Some(*table)),
            CopiedTable::Gone => Ok(None),
            CopiedTable::Damaged(why) => {
                let has = match former {
                    Some(_) => "the backup has its earlier state",
                    None => "it is not in the backup",
                };
                self.problem(format!("table `{name}` of `{slug}`: {why}; {has}"));
                Ok(former.cloned())
            }
        }
    }
}

fn began_at(root: Option<&BackupRoot>) -> DateTime<Utc> {
    let began = root.and_then(|root| DateTime::parse_from_rfc3339(&root.began_at).ok());
    began.map_or(DateTime::UNIX_EPOCH, |began| began.to_utc())
}

/// The kinds of objects in the pipelines bucket.
enum ObjectKind {
    /// The root of a table's manifest.
    Root,
    /// Copied as it is.
    Plain,
    /// Copied with its table, or not at all.
    Other,
}

fn kind_of(key: &str) -> ObjectKind {
    if key == SETTINGS_KEY {
        return ObjectKind::Plain;
    }
    let Some((slug, _)) = split_key(key) else { return ObjectKind::Other };
    match key.strip_prefix(&manifests_prefix(&slug)) {
        Some(name) if !name.contains('/') && name.ends_with(".json") => ObjectKind::Root,
        Some(_) => ObjectKind::Other,
        None if key == run_lock_key(&slug) => ObjectKind::Other,
        None => ObjectKind::Plain,
    }
}

/// An id after `last`, also if both are of one second, or the clock was set back.
fn new_id(began: DateTime<Utc>, last: Option<&str>) -> String {
    const TIME: &str = "%Y%m%dT%H%M%SZ";
    let last = last.and_then(|last| NaiveDateTime::parse_from_str(last.split_once('-')?.0, TIME).ok());
    let at = last.map_or(began, |last| began.max(last.and_utc() + TimeDelta::seconds(1)));
    let unique = uuid::Uuid::new_v4().simple().to_string();
    format!("{}-{}", at.format(TIME), unique.get(..8).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::backup::is_backup_id;

    #[test]
    fn ids_are_in_the_order_of_backups() {
        let at = |second: i64| DateTime::from_timestamp(1_790_000_000 + second, 0).unwrap();
        let first = new_id(at(0), None);
        let same_second = new_id(at(0), Some(&first));
        let set_back = new_id(at(-9_000), Some(&same_second));
        let later = new_id(at(9_000), Some(&set_back));
        let ids = [first, same_second, set_back, later];
        assert!(ids.is_sorted() && ids.iter().all(|id| is_backup_id(id)), "{ids:?}");
    }
}
