//! Marks lost files, so that the next run writes them again.
//!
//! The entries of these files lose their hash, so that no run takes them for present, and the sources with rows in them
//! lose their tag, so that the next run reads these. The run then treats the sources as changed. The manifest keeps the
//! marks: whatever dies, some run repairs the table.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Commit, Edit, FoundRoot, IcebergHead, NewObjects, RootHead, TableError, TableResult, TableStore, WrittenGroup,
};
use crate::domain::layout::manifest_key;
use crate::domain::pipeline::TableFormat;
use crate::domain::table_log::entries::{RangeKey, SourceEntry, StoredFile};
use crate::domain::table_log::root::{Owner, Root};
use crate::ports::store::{Bucket, Lease, Precondition, WriteOptions};

/// The outcome of marking faults for repair.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Marked {
    /// Sources that the next run reads again.
    pub sources: u64,
    /// Lost files whose rows are in no CSV of the lake any more: they can't be rebuilt.
    pub archived: Vec<String>,
}

/// Marks the files of entries as lost. The caller holds the pipeline's lock.
///
/// # Errors
/// If the store or the lease fails.
pub fn mark_lost(table: TableStore<'_>, lost: &BTreeSet<Owner>, lease: &dyn Lease) -> TableResult<Marked> {
    let found = table.root()?;
    let Some(root) = found.readable() else { return Ok(Marked::default()) };
    let mut edit = Edit::new(table, &found, false, &root.job_id)?;
    let (mut marked, mut sources) = (Marked::default(), BTreeSet::new());
    for owner in lost {
        match owner {
            Owner::Group(key) => mark_group(&table, &mut edit, key, &mut sources, &mut marked)?,
            Owner::Rejects(source) => {
                let file = edit.maps.rejects.get(source, &mut table.reader())?.cloned();
                let entry = edit.maps.sources.get(source, &mut table.reader())?.cloned();
                match (file, entry) {
                    (Some(file), Some(entry)) if entry.archived => marked.archived.push(file.key),
                    (Some(file), Some(_)) => {
                        edit.set_rejects(source, Some(file.marked_lost()))?;
                        sources.insert(source.clone());
                    }
                    _ => {}
                }
            }
            Owner::Iceberg => {}
        }
    }
    for source in &sources {
        if let Some(entry) = edit.maps.sources.get(source, &mut table.reader())?.cloned() {
            edit.set_source(source, Some(SourceEntry { etag: None, ..entry }))?;
        }
    }
    marked.sources = sources.len() as u64;
    if !sources.is_empty() {
        commit(table, &found, root, edit, lease)?;
    }
    Ok(marked)
}

fn mark_group(
    table: &TableStore<'_>,
    edit: &mut Edit<'_>,
    key: &RangeKey,
    sources: &mut BTreeSet<String>,
    marked: &mut Marked,
) -> TableResult<()> {
    let mut reader = table.reader();
    let Some(group) = edit.maps.groups.get(key, &mut reader)?.cloned() else { return Ok(()) };
    let mut members = BTreeSet::new();
    for segment in &group.segments {
        let range = RangeKey::new(&key.partition, &segment.first);
        let found = edit.maps.members.get(&range, &mut reader)?;
        members.extend(found.into_iter().flatten().map(|member| member.source.clone()));
    }
    for source in &members {
        if edit.maps.sources.get(source, &mut reader)?.is_some_and(|entry| entry.archived) {
            marked.archived.extend(group.files.iter().map(|file| file.key.clone()));
            return Ok(());
        }
    }
    let files = group.files.iter().cloned().map(StoredFile::marked_lost).collect();
    let segments = group.segments.iter().map(|segment| (segment.clone(), None)).collect();
    edit.replace_groups(
        &key.partition,
        &BTreeMap::from([(key.first.clone(), group)]),
        vec![WrittenGroup { files, segments }],
    )?;
    sources.append(&mut members);
    Ok(())
}

fn commit(table: TableStore<'_>, found: &FoundRoot, root: &Root, edit: Edit<'_>, lease: &dyn Lease) -> TableResult<()> {
    let head = RootHead {
        fence: lease.fence(),
        job_id: root.job_id.clone(),
        committed_at: root.committed_at.clone(),
        fingerprint: root.fingerprint.clone(),
        layout: root.layout.clone(),
        schema: root.schema.clone(),
        delta: root.delta.is_some(),
        iceberg: root.iceberg.as_ref().map(|iceberg| IcebergHead {
            location: iceberg.location.clone(),
            partitions: iceberg.partitions.clone(),
            catalog: iceberg.catalog.clone(),
        }),
    };
    let mut edited = edit.finish(found, head)?;
    edited.root.is_foreign = root.is_foreign;
    edited.root.restored = root.restored;
    let keep_history = !root.retained.is_empty();
    let (retired, made) = (edited.retired, edited.made);
    let commit = Commit {
        table,
        lease,
        before: found,
        next: edited.root,
        retired,
        made,
        unchanged: edited.unchanged,
        returned: Vec::new(),
        keep_history,
        expired: Vec::new(),
    };
    let objects = NewObjects { shards: edited.shards, put_files: &|| Ok(()), files: 0 };
    commit.run::<TableError>(objects, &|| Ok(())).map(drop)
}

/// Marks a table whose manifest is incomplete, so that the next run rebuilds it. The caller holds the pipeline's lock.
///
/// # Errors
/// If the store or the lease fails.
pub fn mark_for_rebuild(table: &TableStore<'_>, lease: &dyn Lease) -> TableResult<()> {
    change_root(table, lease, Root::forget_fingerprint)
}

/// Marks the Delta log or the Iceberg metadata, so that the next run recreates it. The caller holds the pipeline's
/// lock.
///
/// # Errors
/// If the store or the lease fails.
pub fn mark_log(table: &TableStore<'_>, format: TableFormat, lease: &dyn Lease) -> TableResult<()> {
    change_root(table, lease, |root| match format {
        TableFormat::Delta => root.delta = None,
        TableFormat::Iceberg => {
            if let Some(iceberg) = &mut root.iceberg {
                iceberg.is_stale = true;
            }
        }
    })
}

fn change_root(table: &TableStore<'_>, lease: &dyn Lease, change: impl FnOnce(&mut Root)) -> TableResult<()> {
    let FoundRoot::Readable(mut stored) = table.root()? else { return Ok(()) };
    change(&mut stored.root);
    let precondition = stored.etag.map_or(Precondition::None, Precondition::IfMatch);
    let options = WriteOptions::leased(lease).with(precondition);
    table.store.put(Bucket::Pipelines, &manifest_key(table.slug, table.table), &stored.root.to_json(), &options)?;
    Ok(())
}
