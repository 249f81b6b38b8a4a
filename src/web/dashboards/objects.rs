//! The objects of dashboards: listed, created, read, saved, deleted.

use std::collections::BTreeMap;

use super::gate::{judge, refused, verdict};
use super::{DashboardEntry, DashboardList, Done, NewDashboard, YAML};
use crate::domain::dashboard::limits::YAML_BYTES_MAX;
use crate::domain::dashboard::{TEMPLATE, examine};
use crate::domain::layout::{dashboard_draft_key, dashboard_key, dashboards_prefix};
use crate::domain::name::Slug;
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::ports::store::{Bucket, ObjectMeta, Precondition, StoreError, WriteOptions, list_all};
use crate::runtime::rfc3339;
use crate::web::Web;
use crate::web::access::{flag_query, if_match_or_none, slug, slug_param, tagged};
use crate::web::exclusive::Exclusive;
use crate::web::failure::from_store;

/// A dashboard of a request: its pipeline exists.
pub(super) struct Named {
    pub(super) pipeline: Slug,
    pub(super) name: Slug,
}

impl Named {
    /// # Errors
    /// `invalid_slug`, `pipeline_not_found`, and what the store fails with.
    pub(super) fn of(web: &Web, request: &Request) -> Result<Self, ApiError> {
        let name = slug_param(request, "name")?;
        Ok(Self { pipeline: web.existing(request, "pipeline")?, name })
    }

    pub(super) fn published(&self) -> String {
        dashboard_key(&self.pipeline, &self.name)
    }

    pub(super) fn draft(&self) -> String {
        dashboard_draft_key(&self.pipeline, &self.name)
    }

    pub(super) fn key(&self, draft: bool) -> String {
        if draft { self.draft() } else { self.published() }
    }

    /// Keeps saves of the draft apart from a publication, which looks at it once more and deletes it.
    pub(super) fn alone<'a>(&self, web: &'a Web) -> Result<Exclusive<'a>, ApiError> {
        web.exclusive(format!("dashboards/{}/{}", self.pipeline, self.name))
    }

    pub(super) fn missing(&self, what: &str) -> ApiError {
        let message = format!("the pipeline `{}` has no {what} `{}`", self.pipeline, self.name);
        ApiError::new(ErrorCode::DashboardNotFound, message)
    }
}

/// A text of the store, cut one byte past what a dashboard may have, so that the gate sees that it is too much.
pub(super) fn load(web: &Web, key: &str) -> Result<Option<(ObjectMeta, Vec<u8>)>, ApiError> {
    web.read_start(Bucket::Pipelines, key, YAML_BYTES_MAX as u64)
}

/// Every dashboard of a pipeline, by name.
pub(super) fn entries(web: &Web, pipeline: &Slug) -> Result<BTreeMap<String, Entry>, ApiError> {
    let prefix = dashboards_prefix(pipeline);
    let mut entries: BTreeMap<String, Entry> = BTreeMap::new();
    for object in list_all(&*web.store, Bucket::Pipelines, &prefix).map_err(from_store)? {
        let Some(file) = object.key.strip_prefix(&prefix).and_then(|file| file.strip_suffix(".yaml")) else { continue };
        let (name, draft) = file.strip_suffix(".draft").map_or((file, false), |name| (name, true));
        if Slug::parse(name).is_err() {
            continue;
        }
        let entry = entries.entry(name.to_owned()).or_default();
        *(if draft { &mut entry.draft } else { &mut entry.published }) = true;
        entry.modified = entry.modified.max(object.modified);
    }
    Ok(entries)
}

/// What there is of a dashboard.
#[derive(Default)]
pub(super) struct Entry {
    pub(super) published: bool,
    pub(super) draft: bool,
    modified: chrono::DateTime<chrono::Utc>,
}

fn shown(name: String, entry: &Entry) -> DashboardEntry {
    DashboardEntry { name, published: entry.published, draft: entry.draft, modified: rfc3339(entry.modified) }
}

pub(super) fn list(web: &Web, request: &mut Request) -> Result<Response, ApiError> {
    let pipeline = web.existing(request, "pipeline")?;
    let dashboards = entries(web, &pipeline)?.into_iter().map(|(name, entry)| shown(name, &entry)).collect();
    Ok(Response::json(200, &DashboardList { dashboards }))
}

pub(super) fn create(web: &Web, request: &mut Request) -> Result<Response, ApiError> {
    let wanted: NewDashboard = request.json()?;
    let name = slug(&wanted.name)?;
    let named = Named { pipeline: web.existing(request, "pipeline")?, name };
    let taken = || ApiError::new(ErrorCode::AlreadyExists, format!("there is a dashboard `{}` already", named.name));
    let lock = named.alone(web)?;
    if web.store.head(Bucket::Pipelines, &named.published()).map_err(from_store)?.is_some() {
        return Err(taken());
    }
    let absent = lock.options().with(Precondition::IfNoneMatch);
    let key = named.draft();
    let meta = web.in_turn_of_existing(&named.pipeline, &key, || {
        match web.store.put(Bucket::Pipelines, &key, TEMPLATE.as_bytes(), &absent) {
            Err(StoreError::PreconditionFailed { .. }) => Err(taken()),
            put => put.map_err(from_store),
        }
    })?;
    let entry = Entry { published: false, draft: true, modified: meta.modified };
    Ok(tagged(Response::json(201, &shown(named.name.to_string(), &entry)), meta.etag.as_ref()))
}

pub(super) fn get(web: &Web, request: &mut Request) -> Result<Response, ApiError> {
    let draft = flag_query(request, "draft")?;
    let named = Named::of(web, request)?;
    let what = if draft { "draft" } else { "published dashboard" };
    let (meta, bytes) = load(web, &named.key(draft))?.ok_or_else(|| named.missing(what))?;
    Ok(tagged(Response::bytes(200, YAML, bytes), meta.etag.as_ref()))
}

pub(super) fn put(web: &Web, request: &mut Request) -> Result<Response, ApiError> {
    let draft = flag_query(request, "draft")?;
    let condition = if_match_or_none(request)?;
    let named = Named::of(web, request)?;
    let bytes = request.body_bytes()?;
    let key = named.key(draft);
    // Seen before the gate takes its time, so that who comes too late hears it at once.
    let current = web.store.head(Bucket::Pipelines, &key).map_err(from_store)?;
    let precondition = condition.precondition(current.as_ref())?;
    let told = if draft {
        if std::str::from_utf8(&bytes).is_err() {
            return Err(ApiError::new(ErrorCode::InvalidRequest, "the body is not UTF-8"));
        }
        verdict(examine(&bytes))
    } else {
        refused(judge(web, &named.pipeline, &bytes)?)?
    };
    let lock = draft.then(|| named.alone(web)).transpose()?;
    let options = lock.as_ref().map_or_else(WriteOptions::default, Exclusive::options).with(precondition);
    let put = || web.store.put(Bucket::Pipelines, &key, &bytes, &options).map_err(from_store);
    let meta = web.in_turn_of_existing(&named.pipeline, &key, put)?;
    Ok(tagged(Response::json(200, &told), meta.etag.as_ref()))
}

pub(super) fn delete(web: &Web, request: &mut Request) -> Result<Response, ApiError> {
    let named = Named::of(web, request)?;
    let keys = [named.draft(), named.published()];
    let mut there = false;
    for key in &keys {
        there |= web.store.head(Bucket::Pipelines, key).map_err(from_store)?.is_some();
    }
    if !there {
        return Err(named.missing("dashboard"));
    }
    web.store.delete(Bucket::Pipelines, &keys, &WriteOptions::default()).map_err(from_store)?;
    Ok(Response::json(200, &Done { ok: true }))
}
