//! Looking at jobs.

use super::{Jobs, known, moved, named};
use crate::domain::limits::HISTORY_PAGE_JOBS_MAX;
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::pipelines::history::{HistoryCursor, page};
use crate::web::Web;
use crate::web::access::{number_query, optional_query, slug_param};
use crate::web::failure::from_history;

/// Jobs of a page where the request doesn't say.
const PAGE_JOBS_DEFAULT: u64 = 50;

const _: () = assert!(PAGE_JOBS_DEFAULT <= HISTORY_PAGE_JOBS_MAX as u64);

pub fn list(web: &Web, request: &mut Request) -> Result<Response, ApiError> {
    let pipeline = slug_param(request, "pipeline")?;
    let limit = number_query(request, "limit", 1..=HISTORY_PAGE_JOBS_MAX as u64)?.unwrap_or(PAGE_JOBS_DEFAULT);
    let before: Option<HistoryCursor> = optional_query(request, "before")?.map(str::parse).transpose().map_err(
        |error: crate::pipelines::history::CursorError| {
            ApiError::new(ErrorCode::InvalidRequest, format!("before: {error}"))
        },
    )?;
    let limit = usize::try_from(limit).unwrap_or(HISTORY_PAGE_JOBS_MAX);
    let page = page(&*web.store, &*web.kv, &pipeline, before.as_ref(), limit).map_err(from_history)?;
    for (key, why) in &page.unreadable {
        tracing::warn!(%pipeline, key, why, "a record of a job is unreadable: passed over");
    }
    // A pipeline whose only trace is a job is one all the same.
    if page.jobs.is_empty() && before.is_none() {
        web.existing(request, "pipeline")?;
    }
    let jobs = page.jobs.into_iter().map(|job| moved(job, &pipeline)).collect();
    Ok(Response::json(200, &Jobs { jobs, next: page.next.map(|next| next.to_string()) }))
}

pub fn get(web: &Web, request: &mut Request) -> Result<Response, ApiError> {
    let (pipeline, id) = named(request)?;
    Ok(Response::json(200, &known(web, &pipeline, &id)?))
}
