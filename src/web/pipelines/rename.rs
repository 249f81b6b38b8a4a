//! Renames a pipeline: copies its objects, then deletes the originals.
//!
//! Invariants:
//! - at any moment one of the names has the complete pipeline, config included: the old one until the config is copied,
//!   the new one from then on; so no run sees half of it;
//! - no object is deleted unless its current content was copied;
//! - repeating an interrupted rename completes it; until then, neither name takes a config, dashboard or query that could
//!   be lost.
//!
//! The steps: marker on the new name; copy lake, warehouse and the rest; manifests with new tags; marker on the old name
//! (leaving); new marker `made`; config; new marker `moved`; delete the old name's jobs and windows, and its config; move
//! objects that arrived under the old name meanwhile; delete the old objects; delete the old marker, then the new one.
//! Bytes don't change, so job records keep the old slug. An old name without its marker is left alone: it is unused, or
//! belongs to a new pipeline.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::copying::{Copied, copy_objects, delete_unchanged};
use super::marker::{self, OperationStage, PendingOperation};
use super::remove::{delete_objects, delete_others, refuse_unreachable, undo};
use super::service::Pipelines;
use crate::domain::layout::{config_key, manifests_prefix, pipeline_prefix, unfinished_key};
use crate::domain::limits::ROOT_BYTES_MAX;
use crate::domain::name::Slug;
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::pipelines::tables::{TableStore, put_retagged, remove_all_from_catalog};
use crate::ports::store::{Bucket, ObjectMeta, StoreError, list_all_and_skipped};
use crate::runtime::failpoint::reach;
use crate::web::access;
use crate::web::failure::{from_kv, from_store, from_table, pipeline_not_found};
use crate::web::locks::LockedPipeline;
use crate::web::stores::{BoundedRead, Objects, extend_window};

/// Maximum number of passes over the old name for objects that were added during the copy.
const RENAME_ROUNDS_MAX: usize = 8;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct RenameRequest {
    new_slug: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Renamed {
    slug: String,
}

/// `PATCH /api/pipelines/{slug}`
pub(super) fn rename(pipelines: &Pipelines, request: &mut Request) -> Result<Response, ApiError> {
    let from = access::slug_param(request, "slug")?;
    let RenameRequest { new_slug } = request.json()?;
    let to = access::slug(&new_slug)?;
    if from == to {
        let message = format!("the pipeline already has the slug `{to}`");
        return Err(if pipelines.store.exists(&from)? {
            ApiError::new(ErrorCode::AlreadyExists, message)
        } else {
            pipeline_not_found(&from)
        });
    }
    // Checked before waiting for a lock.
    progress(&pipelines.store, &from, &to)?;
    pipelines
        .locks
        .with_pipeline_locks(&[&from, &to], |locked| Rename { pipelines, from: &locked[0], to: &locked[1] }.run())?;
    tracing::info!(pipeline = %to, from = %from, request_id = request.id().as_str(), "pipeline renamed");
    Ok(Response::json(200, &Renamed { slug: to.to_string() }))
}

/// Progress of the rename.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    New,
    Copying,
    Moved,
}

fn progress(store: &Objects, from: &Slug, to: &Slug) -> Result<Progress, ApiError> {
    match marker::read(store, to)? {
        Some(marker) if marker.operation == (PendingOperation::Rename { from: from.clone() }) => {
            if marker.is_complete(store, to)? {
                return Ok(Progress::Moved);
            }
            // If the old pipeline was deleted, the rename must not restore it.
            return if store.exists(from)? { Ok(Progress::Copying) } else { Err(pipeline_not_found(from)) };
        }
        Some(_) => return Err(marker::unfinished(to)),
        None => {}
    }
    if !store.exists(from)? {
        return Err(pipeline_not_found(from));
    }
    marker::refuse_unfinished(store, from)?;
    if store.exists(to)? { Err(marker::already_exists(to)) } else { Ok(Progress::New) }
}

/// The copies made by this attempt, by key relative to the pipeline.
#[derive(Default)]
struct Copies {
    lake: BTreeMap<String, Copied>,
    /// In the pipelines bucket.
    plain: BTreeMap<String, Copied>,
}

struct Rename<'a> {
    pipelines: &'a Pipelines,
    from: &'a LockedPipeline,
    to: &'a LockedPipeline,
}

impl Rename<'_> {
    fn run(&self) -> Result<(), ApiError> {
        let (pipelines, from, to) = (self.pipelines, self.from.slug(), self.to.slug());
        let operation = PendingOperation::Rename { from: from.clone() };
        let progress = progress(&pipelines.store, from, to)?;
        let mut copies = Copies::default();
        if progress == Progress::New && pipelines.store.is_remote() {
            // Finds objects that can't be moved before anything is written.
            Bucket::ALL.iter().try_for_each(|bucket| self.list(self.from, *bucket).map(drop))?;
        }
        if progress != Progress::Moved {
            marker::begin(&pipelines.store, self.to, &operation)?;
            copies = self.copy(progress).map_err(|error| match progress {
                Progress::New => self.undo(error),
                _ => error,
            })?;
            self.from.check()?;
            marker::mark_leaving(&pipelines.store, self.from, to)?;
            marker::advance(&pipelines.store, self.to, &operation, OperationStage::Made)?;
            reach("make::made");
            pipelines.ports.registry.revive_pipeline(to).map_err(from_kv)?;
            self.move_config()?;
        }
        marker::advance(&pipelines.store, self.to, &operation, OperationStage::Moved)?;
        reach("rename::moved");
        if marker::is_leaving(&pipelines.store, from, to)? {
            self.finish(&mut copies)?;
        }
        marker::remove(&pipelines.store, self.to)
    }

    /// Deletes the copies; objects that others put under the new name stay.
    fn undo(&self, error: ApiError) -> ApiError {
        let listed = Bucket::ALL.map(|bucket| (bucket, self.list(self.from, bucket)));
        let whole = listed.iter().all(|(_, objects)| objects.is_ok());
        let copies = listed.into_iter().flat_map(|(bucket, objects)| {
            objects.unwrap_or_default().into_iter().map(move |object| (bucket, self.new_key(&object.key)))
        });
        undo(&self.pipelines.store, self.to, &copies.collect::<Vec<_>>(), whole, error)
    }

    fn list(&self, locked: &LockedPipeline, bucket: Bucket) -> Result<Vec<ObjectMeta>, ApiError> {
        let store = &*self.pipelines.store;
        let (objects, skipped) =
            list_all_and_skipped(store, bucket, &pipeline_prefix(locked.slug())).map_err(from_store)?;
        refuse_unreachable(store, bucket, &Vec::from_iter(skipped))?;
        Ok(objects)
    }

    /// Copies all but the config.
    fn copy(&self, progress: Progress) -> Result<Copies, ApiError> {
        let lake = self.copy_lake()?;
        let files = self.list(self.from, Bucket::Warehouse)?;
        let files = self.copy_of(Bucket::Warehouse, &files)?;
        let rest = self.list(self.from, Bucket::Pipelines)?;
        let (manifests, plain): (Vec<_>, Vec<_>) = rest
            .into_iter()
            .filter(|object| !self.is_config_or_marker(&object.key))
            .partition(|object| self.root_of(object).is_some());
        let plain = self.copy_of(Bucket::Pipelines, &plain)?;
        for root in &manifests {
            self.copy_root(root, &lake)?;
        }
        if progress == Progress::Copying {
            // Copies of an earlier attempt whose originals were deleted. In the lake they may be uploads, and stay.
            delete_others(&self.pipelines.store, self.to, Bucket::Warehouse, |key| files.contains_key(key))?;
            let prefix = pipeline_prefix(self.from.slug());
            let is_current = |key: &str| {
                plain.contains_key(key)
                    || key.starts_with("manifests/")
                    || manifests.iter().any(|object| object.key.strip_prefix(&prefix) == Some(key))
            };
            delete_others(&self.pipelines.store, self.to, Bucket::Pipelines, is_current)?;
        }
        reach("rename::copied");
        Ok(Copies { lake, plain })
    }

    /// Copies the lake until no object changes meanwhile.
    fn copy_lake(&self) -> Result<BTreeMap<String, Copied>, ApiError> {
        let mut copied = BTreeMap::new();
        for _ in 0..RENAME_ROUNDS_MAX {
            let mut listed = self.list(self.from, Bucket::Lake)?;
            let prefix = pipeline_prefix(self.from.slug());
            listed.retain(|object| {
                let done: Option<&Copied> = object.key.strip_prefix(&prefix).and_then(|key| copied.get(key));
                done.is_none_or(|done| !done.is_copy_of(object))
            });
            if listed.is_empty() {
                break;
            }
            copied.extend(self.copy_of(Bucket::Lake, &listed)?);
        }
        Ok(copied)
    }

    /// The copies, by key relative to the pipeline.
    fn copy_of(&self, bucket: Bucket, objects: &[ObjectMeta]) -> Result<BTreeMap<String, Copied>, ApiError> {
        copy_objects(&*self.pipelines.store, bucket, objects, self.from, self.to)
    }

    /// Copies the root of a table's manifest; the rest of it was copied before.
    fn copy_root(&self, object: &ObjectMeta, lake: &BTreeMap<String, Copied>) -> Result<(), ApiError> {
        let Some(table) = self.root_of(object) else { return Ok(()) };
        let json = match self.pipelines.store.read_bounded(Bucket::Pipelines, &object.key, ROOT_BYTES_MAX)? {
            BoundedRead::Whole(_, json) => json,
            BoundedRead::Missing => return Ok(()),
            // It counts as unreadable, and its table is rebuilt.
            BoundedRead::Larger => {
                return self.copy_of(Bucket::Pipelines, std::slice::from_ref(object)).map(drop);
            }
        };
        let table = TableStore::new(&*self.pipelines.store, self.to.slug(), table);
        put_retagged(&table, &json, false, &self.to.options(), |key, entry| {
            lake.get(key)?.tag_of_copy_of(entry.size, entry.etag.as_deref())
        })
        .map_err(from_table)
    }

    /// The key that an object of the old name has under the new one.
    fn new_key(&self, key: &str) -> String {
        format!("{}{}", pipeline_prefix(self.to.slug()), self.relative(key))
    }

    /// The key of an object of the old name, relative to the pipeline's prefix.
    fn relative<'k>(&self, key: &'k str) -> &'k str {
        key.strip_prefix(&pipeline_prefix(self.from.slug())).unwrap_or(key)
    }

    /// Config and marker, which are handled by their own steps.
    fn is_config_or_marker(&self, key: &str) -> bool {
        [self.from.slug(), self.to.slug()].iter().any(|slug| key == config_key(slug) || key == unfinished_key(slug))
    }

    fn is_manifest(&self, object: &ObjectMeta) -> bool {
        object.key.starts_with(&manifests_prefix(self.from.slug()))
    }

    /// The table whose root the object is.
    fn root_of<'k>(&self, object: &'k ObjectMeta) -> Option<&'k str> {
        let name = object.key.strip_prefix(&manifests_prefix(self.from.slug()))?.strip_suffix(".json")?;
        (!name.contains('/')).then_some(name)
    }

    /// Deletes the old name, now that the new one has the pipeline.
    fn finish(&self, copies: &mut Copies) -> Result<(), ApiError> {
        let (pipelines, from, to) = (self.pipelines, self.from.slug(), self.to.slug());
        self.to.check()?;
        self.from.check()?;
        let pauses = pipelines.ports.pauses.pauses().map_err(from_kv)?.pipelines;
        if let Some((_, pause)) = pauses.iter().find(|(paused, _)| paused == from) {
            pipelines.ports.pauses.pause(Some(to), pause).map_err(from_kv)?;
        }
        pipelines.ports.registry.drop_pipeline(from).map_err(from_kv)?;
        reach("rename::dropped");
        pipelines.store.delete(Bucket::Pipelines, &[config_key(from)], &self.from.options()).map_err(from_store)?;
        reach("rename::config_deleted");
        // The next run publishes them under the new name.
        remove_all_from_catalog(&*pipelines.store, from, pipelines.options.catalog.as_deref());
        for _ in 0..RENAME_ROUNDS_MAX {
            if !self.move_leftovers(copies)? {
                break;
            }
        }
        reach("rename::deleted");
        self.from.check()?;
        pipelines.ports.registry.drop_pipeline(from).map_err(from_kv)?;
        // The old name's window was dropped.
        extend_window(&*pipelines.ports.schedule, to)?;
        marker::unmark_leaving(&pipelines.store, self.from)
    }

    /// Copies the config, which makes the new name the pipeline's.
    fn move_config(&self) -> Result<(), ApiError> {
        let (old, new) = (config_key(self.from.slug()), config_key(self.to.slug()));
        let options = self.to.create();
        match self.pipelines.store.copy((Bucket::Pipelines, &old), (Bucket::Pipelines, &new), &options) {
            // A pipeline without config can be renamed, too.
            Ok(_) | Err(StoreError::NotFound { .. }) => {}
            // Another client stored a config there meanwhile.
            Err(StoreError::PreconditionFailed { .. }) => return Err(marker::unfinished(self.to.slug())),
            Err(error) => return Err(from_store(error)),
        }
        reach("rename::config_copied");
        Ok(())
    }

    /// Deletes the old objects, copying late arrivals first; returns whether there were any.
    fn move_leftovers(&self, copies: &mut Copies) -> Result<bool, ApiError> {
        // The tables belong to the new name; its next run reads new files in its lake.
        let tables = self.list(self.from, Bucket::Warehouse)?;
        delete_objects(&self.pipelines.store, self.from, Bucket::Warehouse, &tables)?;
        reach("rename::between_deletes");
        let mut any = !tables.is_empty();
        for (bucket, known) in [(Bucket::Lake, &mut copies.lake), (Bucket::Pipelines, &mut copies.plain)] {
            let mut old = self.list(self.from, bucket)?;
            old.retain(|object| !self.is_config_or_marker(&object.key));
            any |= !old.is_empty();
            let (manifests, old): (Vec<_>, Vec<_>) =
                old.into_iter().partition(|object| bucket == Bucket::Pipelines && self.is_manifest(object));
            delete_objects(&self.pipelines.store, self.from, bucket, &manifests)?;
            self.move_late(bucket, &old, known)?;
            reach("rename::between_deletes");
        }
        Ok(any)
    }

    /// Copies objects that arrived after the copying, and deletes those whose copies are current. `known`: the copies so far.
    fn move_late(
        &self,
        bucket: Bucket,
        old: &[ObjectMeta],
        known: &mut BTreeMap<String, Copied>,
    ) -> Result<(), ApiError> {
        let present = if old.is_empty() { Vec::new() } else { self.list(self.to, bucket)? };
        let present: BTreeMap<&str, &ObjectMeta> = present.iter().map(|o| (o.key.as_str(), o)).collect();
        let key = |object: &ObjectMeta| self.relative(&object.key).to_owned();
        let is_late = |object: &&ObjectMeta| match known.get(&key(object)) {
            Some(copied) => !copied.is_copy_of(object),
            None => present.get(self.new_key(&object.key).as_str()).is_none_or(|new| is_newer(object, new)),
        };
        let late: Vec<ObjectMeta> = old.iter().filter(is_late).cloned().collect();
        for object in &late {
            known.remove(&key(object));
        }
        known.extend(self.copy_of(bucket, &late)?);
        reach("rename::late_copied");
        // Objects copied in this attempt are known by tag; those deleted meanwhile need no deletion.
        let late: BTreeSet<&str> = late.iter().map(|object| object.key.as_str()).collect();
        let copied: Vec<ObjectMeta> = old
            .iter()
            .filter_map(|object| match known.get(&key(object)) {
                Some(copied) => Some(copied.original().clone()),
                None => (!late.contains(object.key.as_str())).then(|| object.clone()),
            })
            .collect();
        // Changed objects are treated as never copied.
        for changed in delete_unchanged(&*self.pipelines.store, bucket, &copied, self.from)? {
            known.remove(self.relative(&changed));
        }
        Ok(())
    }
}

/// Whether an object was stored after an earlier attempt copied it. Within the same second it counts as newer: copying it
/// again does no harm.
fn is_newer(old: &ObjectMeta, new: &ObjectMeta) -> bool {
    let same = old.size == new.size && old.etag.is_some() && old.etag == new.etag;
    !same && old.modified >= new.modified
}
