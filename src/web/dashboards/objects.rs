//! Lists, creates, reads, saves and deletes dashboards.

use std::collections::BTreeMap;

use super::service::{
    DashboardEntry, DashboardList, DashboardObjects, Dashboards, Done, NamedDashboard, NewDashboard, YAML, entries,
    load,
};
use super::validate::{broken, require_valid, validate, verdict};
use crate::domain::dashboard::{TEMPLATE, examine};
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::ports::store::{Bucket, Precondition, StoreError, WriteOptions};
use crate::runtime::rfc3339;
use crate::web::access::{flag_query, if_match_or_none, slug, tagged};
use crate::web::failure::from_store;
use crate::web::locks::NamedLock;

fn shown(name: String, entry: &DashboardObjects) -> DashboardEntry {
    let DashboardObjects { published, draft, modified } = *entry;
    DashboardEntry { name, published, draft, modified: rfc3339(modified), problems: Vec::new() }
}

pub(super) fn list(dashboards: &Dashboards, request: &mut Request) -> Result<Response, ApiError> {
    let pipeline = dashboards.store.existing(request, "pipeline")?;
    let mut problems = if flag_query(request, "check")? { broken(dashboards, &pipeline)? } else { BTreeMap::new() };
    let entry = |(name, entry): (String, DashboardObjects)| {
        let problems = problems.remove(&name).unwrap_or_default();
        DashboardEntry { problems, ..shown(name, &entry) }
    };
    let dashboards = entries(dashboards, &pipeline)?.into_iter().map(entry).collect();
    Ok(Response::json(200, &DashboardList { dashboards }))
}

pub(super) fn create(dashboards: &Dashboards, request: &mut Request) -> Result<Response, ApiError> {
    let wanted: NewDashboard = request.json()?;
    let name = slug(&wanted.name)?;
    let named = NamedDashboard { pipeline: dashboards.store.existing(request, "pipeline")?, name };
    let taken = || ApiError::new(ErrorCode::AlreadyExists, format!("there is already a dashboard `{}`", named.name));
    let lock = named.lock(dashboards)?;
    if dashboards.store.head(Bucket::Pipelines, &named.published()).map_err(from_store)?.is_some() {
        return Err(taken());
    }
    let absent = lock.options().with(Precondition::IfNoneMatch);
    let key = named.draft();
    let meta = dashboards.locks.with_write_lock_of_existing(&named.pipeline, &key, || {
        match dashboards.store.put(Bucket::Pipelines, &key, TEMPLATE.as_bytes(), &absent) {
            Err(StoreError::PreconditionFailed { .. }) => Err(taken()),
            put => put.map_err(from_store),
        }
    })?;
    let entry = DashboardObjects { published: false, draft: true, modified: meta.modified };
    Ok(tagged(Response::json(201, &shown(named.name.to_string(), &entry)), meta.etag.as_ref()))
}

pub(super) fn get(dashboards: &Dashboards, request: &mut Request) -> Result<Response, ApiError> {
    let draft = flag_query(request, "draft")?;
    let named = NamedDashboard::of(dashboards, request)?;
    let what = if draft { "draft" } else { "published dashboard" };
    let (meta, bytes) = load(dashboards, &named.key(draft))?.ok_or_else(|| named.missing(what))?;
    Ok(tagged(Response::bytes(200, YAML, bytes), meta.etag.as_ref()))
}

pub(super) fn put(dashboards: &Dashboards, request: &mut Request) -> Result<Response, ApiError> {
    let draft = flag_query(request, "draft")?;
    let condition = if_match_or_none(request)?;
    let named = NamedDashboard::of(dashboards, request)?;
    let bytes = request.body_bytes()?;
    let key = named.key(draft);
    // Checked before validation, which takes longer.
    let current = dashboards.store.head(Bucket::Pipelines, &key).map_err(from_store)?;
    let precondition = condition.precondition(current.as_ref())?;
    let verdict = if draft {
        if std::str::from_utf8(&bytes).is_err() {
            return Err(ApiError::new(ErrorCode::InvalidRequest, "the body is not UTF-8"));
        }
        verdict(examine(&bytes))
    } else {
        require_valid(validate(dashboards, &named.pipeline, &bytes)?)?
    };
    let lock = draft.then(|| named.lock(dashboards)).transpose()?;
    let options = lock.as_ref().map_or_else(WriteOptions::default, NamedLock::options).with(precondition);
    let put = || dashboards.store.put(Bucket::Pipelines, &key, &bytes, &options).map_err(from_store);
    let meta = dashboards.locks.with_write_lock_of_existing(&named.pipeline, &key, put)?;
    Ok(tagged(Response::json(200, &verdict), meta.etag.as_ref()))
}

pub(super) fn delete(dashboards: &Dashboards, request: &mut Request) -> Result<Response, ApiError> {
    let named = NamedDashboard::of(dashboards, request)?;
    let keys = [named.draft(), named.published()];
    let mut exists = false;
    for key in &keys {
        exists |= dashboards.store.head(Bucket::Pipelines, key).map_err(from_store)?.is_some();
    }
    if !exists {
        return Err(named.missing("dashboard"));
    }
    dashboards.store.delete(Bucket::Pipelines, &keys, &WriteOptions::default()).map_err(from_store)?;
    Ok(Response::json(200, &Done { ok: true }))
}
