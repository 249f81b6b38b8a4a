//! Renames a pipeline: copies it, then deletes what was copied.
//!
//! Invariants:
//! - at every moment one of the two names has all of the pipeline, config and all: the old one until the config is under
//!   the new name, from then on the new one; so no run sees half of it;
//! - nothing is deleted that wasn't copied as it is;
//! - whatever a rename that was cut off left, the same rename again brings to its end; and as long as it may, neither
//!   name takes a config, dashboard or query that this could lose.
//!
//! The order: mark under the new name → lake, warehouse, the rest → manifests with their new tags → the old name is
//! marked as leaving → the new one's mark says `made` → config → the mark says `moved`, for what has no config and for
//! whoever deletes it → the old name's jobs and windows go → its config → what came under the old name meanwhile is
//! moved too → the old objects go → the old name's mark goes → the new one's. Bytes stay as they are, so records of jobs
//! go on naming the old slug. A name without the mark of its leaving is left alone: it is nobody's, or a new pipeline's.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::copying::{Copied, copy_objects, delete_unchanged};
use super::etags;
use super::hold::{Held, holding};
use super::mark::{self, Stage, Wish};
use super::remove::{delete_objects, delete_others, not_found, refuse_unreachable, undo};
use crate::domain::layout::{config_key, manifests_prefix, pipeline_prefix, unfinished_key};
use crate::domain::limits::{MANIFEST_BYTES_MAX, RENAME_ROUNDS_MAX};
use crate::domain::name::Slug;
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::ports::store::{Bucket, ObjectMeta, StoreError, list_all_and_skipped};
use crate::runtime::failpoint::reach;
use crate::web::Web;
use crate::web::access;
use crate::web::failure::{from_kv, from_store};

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
pub(super) fn rename(web: &Web, request: &mut Request) -> Result<Response, ApiError> {
    let from = access::slug_param(request, "slug")?;
    let RenameRequest { new_slug } = request.json()?;
    let to = access::slug(&new_slug)?;
    if from == to {
        let message = format!("the pipeline's slug is `{to}` already");
        return Err(if web.exists(&from)? {
            ApiError::new(ErrorCode::AlreadyExists, message)
        } else {
            not_found(&from)
        });
    }
    // What can be told without waiting for a lock.
    progress(web, &from, &to)?;
    holding(web, &[&from, &to], |held| Rename { web, from: &held[0], to: &held[1] }.run())?;
    tracing::info!(pipeline = %to, from = %from, request_id = request.id().as_str(), "the pipeline is renamed");
    Ok(Response::json(200, &Renamed { slug: to.to_string() }))
}

/// How far the rename has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    New,
    Copying,
    Moved,
}

fn progress(web: &Web, from: &Slug, to: &Slug) -> Result<Progress, ApiError> {
    match mark::read(web, to)? {
        Some(mark) if mark.wish == (Wish::Rename { from: from.clone() }) => {
            if mark.is_whole(web, to)? {
                return Ok(Progress::Moved);
            }
            // What is copied of it, whoever deleted it didn't want.
            return if web.exists(from)? { Ok(Progress::Copying) } else { Err(not_found(from)) };
        }
        Some(_) => return Err(mark::unfinished(to)),
        None => {}
    }
    if !web.exists(from)? {
        return Err(not_found(from));
    }
    mark::refuse_unfinished(web, from)?;
    if web.exists(to)? { Err(mark::taken(to)) } else { Ok(Progress::New) }
}

/// What is known of the copies, by key relative to the pipeline; empty for those of an earlier try.
#[derive(Default)]
struct Copies {
    lake: BTreeMap<String, Copied>,
    /// Of the pipelines bucket.
    plain: BTreeMap<String, Copied>,
}

struct Rename<'a> {
    web: &'a Web,
    from: &'a Held,
    to: &'a Held,
}

impl Rename<'_> {
    fn run(&self) -> Result<(), ApiError> {
        let (web, from, to) = (self.web, self.from.slug(), self.to.slug());
        let wish = Wish::Rename { from: from.clone() };
        let progress = progress(web, from, to)?;
        let mut copies = Copies::default();
        if progress == Progress::New && web.store.is_remote() {
            // What can't be moved is found before anything is written.
            Bucket::ALL.iter().try_for_each(|bucket| self.list(self.from, *bucket).map(drop))?;
        }
        if progress != Progress::Moved {
            mark::begin(web, self.to, &wish)?;
            copies = self.copy(progress).map_err(|error| match progress {
                Progress::New => self.undo(error),
                _ => error,
            })?;
            self.from.check()?;
            mark::leave(web, self.from, to)?;
            mark::advance(web, self.to, &wish, Stage::Made)?;
            reach("make::made");
            web.kv.revive_pipeline(to).map_err(from_kv)?;
            self.move_config()?;
        }
        mark::advance(web, self.to, &wish, Stage::Moved)?;
        reach("rename::moved");
        if mark::leaves(web, from, to)? {
            self.finish(&mut copies)?;
        }
        mark::remove(web, self.to)
    }

    /// Takes back what was copied; what was put under the new name by others stays.
    fn undo(&self, error: ApiError) -> ApiError {
        let listed = Bucket::ALL.map(|bucket| (bucket, self.list(self.from, bucket)));
        let whole = listed.iter().all(|(_, objects)| objects.is_ok());
        let copies = listed.into_iter().flat_map(|(bucket, objects)| {
            objects.unwrap_or_default().into_iter().map(move |object| (bucket, self.new_key(&object.key)))
        });
        undo(self.web, self.to, &copies.collect::<Vec<_>>(), whole, error)
    }

    fn list(&self, held: &Held, bucket: Bucket) -> Result<Vec<ObjectMeta>, ApiError> {
        let store = &*self.web.store;
        let (objects, skipped) =
            list_all_and_skipped(store, bucket, &pipeline_prefix(held.slug())).map_err(from_store)?;
        refuse_unreachable(store, bucket, &Vec::from_iter(skipped))?;
        Ok(objects)
    }

    /// Copies all but the config.
    fn copy(&self, progress: Progress) -> Result<Copies, ApiError> {
        let lake = self.copy_lake()?;
        let files = self.list(self.from, Bucket::Warehouse)?;
        let files = self.copy_of(Bucket::Warehouse, &files)?;
        let rest = self.list(self.from, Bucket::Pipelines)?;
        let (manifests, plain): (Vec<_>, Vec<_>) =
            rest.into_iter().filter(|object| !self.is_apart(&object.key)).partition(|object| self.is_manifest(object));
        let plain = self.copy_of(Bucket::Pipelines, &plain)?;
        for manifest in &manifests {
            self.copy_manifest(manifest, &lake, &files)?;
        }
        if progress == Progress::Copying {
            // What an earlier try copied and is no more. In the lake it may be somebody's upload, and stays.
            delete_others(self.web, self.to, Bucket::Warehouse, |key| files.contains_key(key))?;
            let prefix = pipeline_prefix(self.from.slug());
            let is_current = |key: &str| {
                plain.contains_key(key) || manifests.iter().any(|object| object.key.strip_prefix(&prefix) == Some(key))
            };
            delete_others(self.web, self.to, Bucket::Pipelines, is_current)?;
        }
        reach("rename::copied");
        Ok(Copies { lake, plain })
    }

    /// Copies the lake until nothing changes under it.
    fn copy_lake(&self) -> Result<BTreeMap<String, Copied>, ApiError> {
        let mut copied = BTreeMap::new();
        for _ in 0..RENAME_ROUNDS_MAX {
            let mut listed = self.list(self.from, Bucket::Lake)?;
            let prefix = pipeline_prefix(self.from.slug());
            listed.retain(|object| {
                let done: Option<&Copied> = object.key.strip_prefix(&prefix).and_then(|key| copied.get(key));
                done.is_none_or(|done| !done.is_of(object))
            });
            if listed.is_empty() {
                break;
            }
            copied.extend(self.copy_of(Bucket::Lake, &listed)?);
        }
        Ok(copied)
    }

    /// By key relative to the pipeline.
    fn copy_of(&self, bucket: Bucket, objects: &[ObjectMeta]) -> Result<BTreeMap<String, Copied>, ApiError> {
        copy_objects(&*self.web.store, bucket, objects, self.from, self.to)
    }

    fn copy_manifest(
        &self,
        object: &ObjectMeta,
        lake: &BTreeMap<String, Copied>,
        files: &BTreeMap<String, Copied>,
    ) -> Result<(), ApiError> {
        let Some((_, json)) = self.web.read(Bucket::Pipelines, &object.key, MANIFEST_BYTES_MAX)? else { return Ok(()) };
        let tag = |copied: Option<&Copied>, size: u64, etag: Option<&str>| copied?.tag_if_it_was(size, etag);
        let rebuilt = etags::rebuilt(
            &json,
            |key, entry| tag(lake.get(key), entry.size, entry.etag.as_deref()),
            |entry| tag(files.get(&entry.key), entry.size, entry.etag.as_deref()),
        );
        let key = self.new_key(&object.key);
        let body = rebuilt.unwrap_or(json);
        self.web.store.put(Bucket::Pipelines, &key, &body, &self.to.options()).map(drop).map_err(from_store)
    }

    /// The key that an object of the old name has under the new one.
    fn new_key(&self, key: &str) -> String {
        format!("{}{}", pipeline_prefix(self.to.slug()), self.relative(key))
    }

    /// The key of an object of the old name, relative to the pipeline's prefix.
    fn relative<'k>(&self, key: &'k str) -> &'k str {
        key.strip_prefix(&pipeline_prefix(self.from.slug())).unwrap_or(key)
    }

    /// Config and mark, which have their own moments.
    fn is_apart(&self, key: &str) -> bool {
        [self.from.slug(), self.to.slug()].iter().any(|slug| key == config_key(slug) || key == unfinished_key(slug))
    }

    fn is_manifest(&self, object: &ObjectMeta) -> bool {
        object.key.starts_with(&manifests_prefix(self.from.slug()))
    }

    /// Takes the old name away, now that the new one has the pipeline.
    fn finish(&self, copies: &mut Copies) -> Result<(), ApiError> {
        let (web, from, to) = (self.web, self.from.slug(), self.to.slug());
        self.to.check()?;
        self.from.check()?;
        web.kv.drop_pipeline(from).map_err(from_kv)?;
        reach("rename::dropped");
        web.store.delete(Bucket::Pipelines, &[config_key(from)], &self.from.options()).map_err(from_store)?;
        reach("rename::config_deleted");
        for _ in 0..RENAME_ROUNDS_MAX {
            if !self.move_leftovers(copies)? {
                break;
            }
        }
        reach("rename::deleted");
        self.from.check()?;
        web.kv.drop_pipeline(from).map_err(from_kv)?;
        // For the files whose window was dropped with the old name.
        web.extend_window(to)?;
        mark::left(web, self.from)
    }

    /// With it the new name has the pipeline.
    fn move_config(&self) -> Result<(), ApiError> {
        let (old, new) = (config_key(self.from.slug()), config_key(self.to.slug()));
        let options = self.to.create();
        match self.web.store.copy((Bucket::Pipelines, &old), (Bucket::Pipelines, &new), &options) {
            // One that has none can be moved, too.
            Ok(_) | Err(StoreError::NotFound { .. }) => {}
            // Somebody has put one there meanwhile.
            Err(StoreError::PreconditionFailed { .. }) => return Err(mark::unfinished(self.to.slug())),
            Err(error) => return Err(from_store(error)),
        }
        reach("rename::config_copied");
        Ok(())
    }

    /// Deletes the old objects, and copies before what was put after the copying; whether there were any.
    fn move_leftovers(&self, copies: &mut Copies) -> Result<bool, ApiError> {
        // Tables are the new name's by now; a run of it takes in what its lake has got.
        let tables = self.list(self.from, Bucket::Warehouse)?;
        delete_objects(self.web, self.from, Bucket::Warehouse, &tables)?;
        reach("rename::between_deletes");
        let mut any = !tables.is_empty();
        for (bucket, known) in [(Bucket::Lake, &mut copies.lake), (Bucket::Pipelines, &mut copies.plain)] {
            let mut old = self.list(self.from, bucket)?;
            old.retain(|object| !self.is_apart(&object.key));
            any |= !old.is_empty();
            let (manifests, old): (Vec<_>, Vec<_>) =
                old.into_iter().partition(|object| bucket == Bucket::Pipelines && self.is_manifest(object));
            delete_objects(self.web, self.from, bucket, &manifests)?;
            self.move_late(bucket, &old, known)?;
            reach("rename::between_deletes");
        }
        Ok(any)
    }

    /// Copies what was put after the copying, and deletes what is still as it was copied. `known`: the copies so far.
    fn move_late(
        &self,
        bucket: Bucket,
        old: &[ObjectMeta],
        known: &mut BTreeMap<String, Copied>,
    ) -> Result<(), ApiError> {
        let there = if old.is_empty() { Vec::new() } else { self.list(self.to, bucket)? };
        let there: BTreeMap<&str, &ObjectMeta> = there.iter().map(|o| (o.key.as_str(), o)).collect();
        let key = |object: &ObjectMeta| self.relative(&object.key).to_owned();
        let is_late = |object: &&ObjectMeta| match known.get(&key(object)) {
            Some(copied) => !copied.is_of(object),
            None => there.get(self.new_key(&object.key).as_str()).is_none_or(|new| is_newer(object, new)),
        };
        let late: Vec<ObjectMeta> = old.iter().filter(is_late).cloned().collect();
        for object in &late {
            known.remove(&key(object));
        }
        known.extend(self.copy_of(bucket, &late)?);
        reach("rename::late_copied");
        // What was copied in this try is known by its tag; what vanished while it was copied needs no deleting.
        let late: BTreeSet<&str> = late.iter().map(|object| object.key.as_str()).collect();
        let copied: Vec<ObjectMeta> = old
            .iter()
            .filter_map(|object| match known.get(&key(object)) {
                Some(copied) => Some(copied.original().clone()),
                None => (!late.contains(object.key.as_str())).then(|| object.clone()),
            })
            .collect();
        // Those are looked at as if they had never been copied.
        for changed in delete_unchanged(&*self.web.store, bucket, &copied, self.from)? {
            known.remove(self.relative(&changed));
        }
        Ok(())
    }
}

/// Whether what an earlier try may have copied was put since. Of the same second it counts as newer: another copy does no
/// harm.
fn is_newer(old: &ObjectMeta, new: &ObjectMeta) -> bool {
    let same = old.size == new.size && old.etag.is_some() && old.etag == new.etag;
    !same && old.modified >= new.modified
}
