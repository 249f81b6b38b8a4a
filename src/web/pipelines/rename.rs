//! Renames a pipeline: copies it, then deletes what was copied.
//!
//! Invariants:
//! - at every moment one of the two names has all of the pipeline, config and all: the old one until the config is under
//!   the new name, from then on the new one; so no run sees half of it;
//! - nothing is deleted that wasn't copied;
//! - whatever a rename that was cut off left, the same rename again brings to its end.
//!
//! The order: mark under the new name → lake, warehouse, the rest → manifests with their new tags → the mark says `made`
//! → config → the mark says `moved`, for what has no config and for whoever deletes it → the old name's jobs and windows go → its config →
//! what came under the old name meanwhile is moved too → the old objects go → the mark goes. Bytes stay as they are, so
//! records of jobs go on naming the old slug.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::copying::{Copied, copy_objects};
use super::etags;
use super::hold::{Held, holding};
use super::mark::{self, Stage, Wish};
use super::remove::{delete_objects, delete_others, not_found, undo};
use crate::domain::layout::{config_key, manifests_prefix, pipeline_prefix, unfinished_key};
use crate::domain::limits::RENAME_ROUNDS_MAX;
use crate::domain::name::Slug;
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::ports::failpoint::reach;
use crate::ports::store::{Bucket, ObjectMeta, StoreError, list_all};
use crate::web::Web;
use crate::web::access;
use crate::web::failure::{from_kv, from_store};

/// Largest manifest that is moved, in bytes: it has an entry for each source and file.
pub(super) const MANIFEST_BYTES_MAX: u64 = 256 << 20;

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
        return Err(ApiError::new(ErrorCode::InvalidRequest, format!("the pipeline's slug is `{to}` already")));
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
            return Ok(if mark.is_whole(web, to)? { Progress::Moved } else { Progress::Copying });
        }
        Some(_) => return Err(mark::unfinished(to)),
        None => {}
    }
    if !web.exists(from)? {
        return Err(not_found(from));
    }
    if mark::read(web, from)?.is_some() {
        return Err(mark::half_made(from));
    }
    if web.exists(to)? { Err(mark::taken(to)) } else { Ok(Progress::New) }
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
        if progress != Progress::Moved {
            mark::begin(web, self.to, &wish)?;
            if let Err(error) = self.copy(progress) {
                if progress == Progress::New {
                    self.undo();
                }
                return Err(error);
            }
            self.from.check()?;
            mark::advance(web, self.to, &wish, Stage::Made)?;
            reach("make::made");
            web.kv.revive_pipeline(to).map_err(from_kv)?;
            self.move_config()?;
        }
        mark::advance(web, self.to, &wish, Stage::Moved)?;
        reach("rename::moved");
        self.finish()
    }

    /// Takes back what was copied; what was put under the new name by others stays.
    fn undo(&self) {
        let copies = |bucket| {
            let listed = self.list(self.from, bucket).unwrap_or_default();
            listed.into_iter().map(move |object| (bucket, self.new_key(&object.key)))
        };
        let copies: Vec<(Bucket, String)> = Bucket::ALL.into_iter().flat_map(copies).collect();
        undo(self.web, self.to, &copies);
    }

    fn list(&self, held: &Held, bucket: Bucket) -> Result<Vec<ObjectMeta>, ApiError> {
        list_all(&*self.web.store, bucket, &pipeline_prefix(held.slug())).map_err(from_store)
    }

    /// Copies all but the config.
    fn copy(&self, progress: Progress) -> Result<(), ApiError> {
        let lake = self.copy_lake()?;
        let files = self.list(self.from, Bucket::Warehouse)?;
        let files = self.copy_of(Bucket::Warehouse, &files)?;
        let rest = self.list(self.from, Bucket::Pipelines)?;
        let (manifests, plain): (Vec<_>, Vec<_>) =
            rest.into_iter().filter(|object| !self.is_apart(&object.key)).partition(|object| self.is_manifest(object));
        let copied = self.copy_of(Bucket::Pipelines, &plain)?;
        for manifest in &manifests {
            self.copy_manifest(manifest, &lake, &files)?;
        }
        if progress == Progress::Copying {
            // What an earlier try copied and is no more. In the lake it may be somebody's upload, and stays.
            delete_others(self.web, self.to, Bucket::Warehouse, |key| files.contains_key(key))?;
            let prefix = pipeline_prefix(self.from.slug());
            let is_current = |key: &str| {
                copied.contains_key(key) || manifests.iter().any(|object| object.key.strip_prefix(&prefix) == Some(key))
            };
            delete_others(self.web, self.to, Bucket::Pipelines, is_current)?;
        }
        reach("rename::copied");
        Ok(())
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
        let (from, to) = (pipeline_prefix(self.from.slug()), pipeline_prefix(self.to.slug()));
        format!("{to}{}", key.strip_prefix(&from).unwrap_or(key))
    }

    /// Config and mark, which have their own moments.
    fn is_apart(&self, key: &str) -> bool {
        [self.from.slug(), self.to.slug()].iter().any(|slug| key == config_key(slug) || key == unfinished_key(slug))
    }

    fn is_manifest(&self, object: &ObjectMeta) -> bool {
        object.key.starts_with(&manifests_prefix(self.from.slug()))
    }

    /// From here on the new name has the pipeline.
    fn finish(&self) -> Result<(), ApiError> {
        let (web, from, to) = (self.web, self.from.slug(), self.to.slug());
        self.to.check()?;
        self.from.check()?;
        web.kv.drop_pipeline(from).map_err(from_kv)?;
        reach("rename::dropped");
        web.store.delete(Bucket::Pipelines, &[config_key(from)], &self.from.options()).map_err(from_store)?;
        reach("rename::config_deleted");
        for _ in 0..RENAME_ROUNDS_MAX {
            if !self.move_leftovers()? {
                break;
            }
        }
        reach("rename::deleted");
        self.from.check()?;
        web.kv.drop_pipeline(from).map_err(from_kv)?;
        // For the files whose window was dropped with the old name.
        web.kv.extend_windows(std::slice::from_ref(to)).map_err(from_kv)?;
        mark::remove(web, self.to)
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
    fn move_leftovers(&self) -> Result<bool, ApiError> {
        let mut any = false;
        for bucket in [Bucket::Warehouse, Bucket::Lake, Bucket::Pipelines] {
            let old = self.list(self.from, bucket)?;
            any |= !old.is_empty();
            // Tables are the new name's by now; a run of it takes in what its lake has got.
            if bucket != Bucket::Warehouse {
                let there = self.list(self.to, bucket)?;
                let there: BTreeMap<&str, &ObjectMeta> = there.iter().map(|o| (o.key.as_str(), o)).collect();
                let late: Vec<ObjectMeta> = old
                    .iter()
                    .filter(|object| !self.is_apart(&object.key) && !self.is_manifest(object))
                    .filter(|o| there.get(self.new_key(&o.key).as_str()).is_none_or(|new| o.modified >= new.modified))
                    .cloned()
                    .collect();
                self.copy_of(bucket, &late)?;
            }
            delete_objects(self.web, self.from, bucket, &old)?;
            reach("rename::between_deletes");
        }
        Ok(any)
    }
}
