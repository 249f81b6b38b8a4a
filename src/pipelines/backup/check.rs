//! Reads a backup back, and compares every object with its size and hash.

use sha2::{Digest, Sha256};

use super::error::{BackupError, BackupResult};
use super::place::BackupPlace;
use super::transfer::{TRANSFERS_MAX, TransferWatch};
use crate::domain::backup::{BackupObject, BackupRoot, BackupTable, BackupTableObject};
use crate::domain::digest::hex;
use crate::domain::table_log::shards::ShardedMap;
use crate::sync::parallel_map;

/// Objects read together.
const BATCH: usize = 1_000;

/// Reads all objects of a backup. `report` gets each damaged one, with what is wrong.
///
/// # Errors
/// If the place fails, or part of the index is missing or damaged, so that objects after it are unknown; those of `report`.
pub fn check(
    place: &BackupPlace<'_>,
    root: &BackupRoot,
    watch: TransferWatch<'_>,
    report: &mut dyn FnMut(&str) -> BackupResult<()>,
) -> BackupResult<()> {
    let mut batch = Batch { place, watch, objects: Vec::new(), report };
    for shards in [&root.plain, &root.lake] {
        for entry in ShardedMap::<String, BackupObject>::new(shards).entries(&mut place.reader()) {
            let (key, object) = entry?;
            batch.add(key, object)?;
        }
    }
    for entry in ShardedMap::<String, BackupTable>::new(&root.tables).entries(&mut place.reader()) {
        let (key, table) = entry?;
        batch.add(key, table.root)?;
        for entry in ShardedMap::<u64, BackupTableObject>::new(&table.objects).entries(&mut place.reader()) {
            let (_, entry) = entry?;
            batch.add(entry.key, entry.object)?;
        }
    }
    batch.read()
}

struct Batch<'a> {
    place: &'a BackupPlace<'a>,
    watch: TransferWatch<'a>,
    objects: Vec<(String, BackupObject)>,
    report: &'a mut dyn FnMut(&str) -> BackupResult<()>,
}

impl Batch<'_> {
    fn add(&mut self, key: String, object: BackupObject) -> BackupResult<()> {
        self.objects.push((key, object));
        if self.objects.len() >= BATCH { self.read() } else { Ok(()) }
    }

    fn read(&mut self) -> BackupResult<()> {
        let objects = std::mem::take(&mut self.objects);
        let faults = parallel_map(&objects, TRANSFERS_MAX, |(key, object)| {
            self.watch.check()?;
            let checked = hash(self.place, key, object);
            self.watch.seen();
            match checked {
                Ok(()) => Ok(None),
                Err(error @ BackupError::Damaged { .. }) => Ok(Some(error.to_string())),
                Err(error) => Err(error),
            }
        })?;
        faults.into_iter().flatten().try_for_each(|fault| (self.report)(&fault))
    }
}

fn hash(place: &BackupPlace<'_>, key: &str, object: &BackupObject) -> BackupResult<()> {
    let mut hash = Sha256::new();
    place.read_parts(key, object, &mut |part| {
        hash.update(part);
        Ok(())
    })?;
    check_hash(key, object, &hex(&hash.finalize()))
}

/// # Errors
/// [`BackupError::Damaged`] if the hash isn't that of the index.
pub(super) fn check_hash(key: &str, object: &BackupObject, sha256: &str) -> BackupResult<()> {
    match object.sha256 == sha256 {
        true => Ok(()),
        false => {
            let found = format!("its SHA-256 is {sha256}, expected {} (data `{}`)", object.sha256, object.data);
            Err(BackupError::Damaged { key: key.to_owned(), found })
        }
    }
}
