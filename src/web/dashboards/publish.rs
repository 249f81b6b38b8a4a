//! The gate on its own, and the way of a draft through it.
//!
//! A publication is cut off at worst between the two: the published text is the draft's then, and the draft is still
//! there. Publishing again ends it.

use super::Verdict;
use super::gate::{judge, refused, verdict};
use super::objects::{Named, load};
use crate::domain::dashboard::limits::YAML_BYTES_MAX;
use crate::domain::dashboard::{DashboardProblem, DashboardProblemKind};
use crate::domain::text::Position;
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::ports::store::{Bucket, Precondition, WriteOptions};
use crate::runtime::failpoint;
use crate::web::Web;
use crate::web::access::{IfMatch, if_match, tagged};
use crate::web::failure::from_store;

/// Always 200, also for a name that nothing has: the verdict is in the body.
pub(super) fn validate(web: &Web, request: &mut Request) -> Result<Response, ApiError> {
    let verdict = match validated(web, request) {
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

fn validated(web: &Web, request: &mut Request) -> Result<Verdict, ApiError> {
    // One byte more than a dashboard may have makes it too large.
    let (mut bytes, _) = request.body_start(YAML_BYTES_MAX + 1)?;
    let named = Named::of(web, request)?;
    if bytes.is_empty() {
        let saved = match load(web, &named.draft())? {
            Some(draft) => Some(draft),
            None => load(web, &named.published())?,
        };
        bytes = saved.ok_or_else(|| named.missing("dashboard"))?.1;
    }
    Ok(verdict(judge(web, &named.pipeline, &bytes)?))
}

pub(super) fn publish(web: &Web, request: &mut Request) -> Result<Response, ApiError> {
    let condition = if_match(request)?;
    let named = Named::of(web, request)?;
    let Some((draft, bytes)) = load(web, &named.draft())? else { return already(web, &named, &condition) };
    condition.precondition(Some(&draft))?;
    // Seen before the gate takes its time: what somebody else publishes meanwhile is not written over.
    let before = web.store.head(Bucket::Pipelines, &named.published()).map_err(from_store)?;
    let unchanged = match before.and_then(|before| before.etag) {
        Some(tag) => Precondition::IfMatch(tag),
        None => Precondition::IfNoneMatch,
    };
    let verdict = refused(judge(web, &named.pipeline, &bytes)?)?;
    let key = named.published();
    let options = WriteOptions::default().with(unchanged);
    let put = || web.store.put(Bucket::Pipelines, &key, &bytes, &options).map_err(from_store);
    let meta = web.in_turn_of_existing(&named.pipeline, &key, put)?;
    failpoint::reach("dashboards::published");
    // A draft that was saved meanwhile is a new one; none is saved between the look and the deletion.
    let lock = named.alone(web)?;
    let now = web.store.head(Bucket::Pipelines, &named.draft()).map_err(from_store)?;
    if now.is_some_and(|now| now.etag == draft.etag) {
        failpoint::reach("dashboards::compared");
        web.store.delete(Bucket::Pipelines, &[named.draft()], &lock.options()).map_err(from_store)?;
    }
    Ok(tagged(Response::json(200, &verdict), meta.etag.as_ref()))
}

/// Without a draft, what is published stays so: whoever didn't hear the answer may ask again.
fn already(web: &Web, named: &Named, condition: &IfMatch) -> Result<Response, ApiError> {
    let published = web.store.head(Bucket::Pipelines, &named.published()).map_err(from_store)?;
    let meta = published.ok_or_else(|| named.missing("draft"))?;
    if *condition != IfMatch::Anything {
        return Err(ApiError::new(ErrorCode::PreconditionFailed, "there is no draft"));
    }
    Ok(tagged(Response::json(200, &Verdict { ok: true, errors: Vec::new(), warnings: Vec::new() }), meta.etag.as_ref()))
}
