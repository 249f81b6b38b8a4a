//! Validates and publishes drafts.
//!
//! An interrupted publication leaves the published dashboard and an equal draft; publishing again completes it.

use super::service::{Dashboards, NamedDashboard, Verdict, load};
use super::validate::{self, require_valid, verdict};
use crate::domain::dashboard::limits::YAML_BYTES_MAX;
use crate::domain::dashboard::{DashboardProblem, DashboardProblemKind};
use crate::domain::text::Position;
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::ports::store::{Bucket, Precondition, WriteOptions};
use crate::runtime::failpoint;
use crate::web::access::{IfMatch, if_match, tagged};
use crate::web::failure::from_store;

/// Always 200, even for an unknown name: the verdict is in the body.
pub(super) fn validate(dashboards: &Dashboards, request: &mut Request) -> Result<Response, ApiError> {
    let verdict = match validated(dashboards, request) {
        Err(error) if is_about_the_name(error.code()) => {
            let problem =
                DashboardProblem::new(DashboardProblemKind::InvalidValue, "", error.message(), Position::START);
            Verdict { ok: false, errors: vec![problem], warnings: Vec::new() }
        }
        outcome => outcome?,
    };
    Ok(Response::json(200, &verdict))
}

fn is_about_the_name(code: ErrorCode) -> bool {
    [ErrorCode::InvalidSlug, ErrorCode::PipelineNotFound, ErrorCode::DashboardNotFound].contains(&code)
}

fn validated(dashboards: &Dashboards, request: &mut Request) -> Result<Verdict, ApiError> {
    // One byte past the limit marks it as too large.
    let (mut bytes, _) = request.body_start(YAML_BYTES_MAX + 1)?;
    let named = NamedDashboard::of(dashboards, request)?;
    if bytes.is_empty() {
        let saved = match load(dashboards, &named.draft())? {
            Some(draft) => Some(draft),
            None => load(dashboards, &named.published())?,
        };
        bytes = saved.ok_or_else(|| named.missing("dashboard"))?.1;
    }
    Ok(verdict(validate::validate(dashboards, &named.pipeline, &bytes)?))
}

pub(super) fn publish(dashboards: &Dashboards, request: &mut Request) -> Result<Response, ApiError> {
    let condition = if_match(request)?;
    let named = NamedDashboard::of(dashboards, request)?;
    let Some((draft, bytes)) = load(dashboards, &named.draft())? else {
        return already_published(dashboards, &named, &condition);
    };
    condition.precondition(Some(&draft))?;
    // Read before validation: a dashboard that another request publishes meanwhile isn't overwritten.
    let before = dashboards.store.head(Bucket::Pipelines, &named.published()).map_err(from_store)?;
    let unchanged = match before.and_then(|before| before.etag) {
        Some(tag) => Precondition::IfMatch(tag),
        None => Precondition::IfNoneMatch,
    };
    let verdict = require_valid(validate::validate(dashboards, &named.pipeline, &bytes)?)?;
    let key = named.published();
    let options = WriteOptions::default().with(unchanged);
    let put = || dashboards.store.put(Bucket::Pipelines, &key, &bytes, &options).map_err(from_store);
    let meta = dashboards.locks.with_write_lock_of_existing(&named.pipeline, &key, put)?;
    failpoint::reach("dashboards::published");
    // A draft saved meanwhile is kept; the lock prevents saves between the check and the deletion.
    let lock = named.lock(dashboards)?;
    let now = dashboards.store.head(Bucket::Pipelines, &named.draft()).map_err(from_store)?;
    if now.is_some_and(|now| now.etag == draft.etag) {
        failpoint::reach("dashboards::compared");
        dashboards.store.delete(Bucket::Pipelines, &[named.draft()], &lock.options()).map_err(from_store)?;
    }
    Ok(tagged(Response::json(200, &verdict), meta.etag.as_ref()))
}

/// Without a draft, an already published dashboard is a success, so that the request can be repeated.
fn already_published(
    dashboards: &Dashboards,
    named: &NamedDashboard,
    condition: &IfMatch,
) -> Result<Response, ApiError> {
    let published = dashboards.store.head(Bucket::Pipelines, &named.published()).map_err(from_store)?;
    let meta = published.ok_or_else(|| named.missing("draft"))?;
    if *condition != IfMatch::Anything {
        return Err(ApiError::new(ErrorCode::PreconditionFailed, "there is no draft"));
    }
    Ok(tagged(Response::json(200, &Verdict { ok: true, errors: Vec::new(), warnings: Vec::new() }), meta.etag.as_ref()))
}
