//! Lists the pipelines.

use serde::Serialize;
use serde_json::Value;

use super::recent::{Budget, JOBS_MAX, RecentJobs, recent};
use super::service::{ConfigState, Detail, Details, DetailsPage, LastJob, Listed, Pipelines};
use crate::domain::job::{Job, JobStatus};
use crate::domain::layout::config_key;
use crate::domain::limits::CONFIG_BYTES_MAX;
use crate::domain::name::{NameError, Slug};
use crate::domain::pipeline::validate;
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::pipelines::{self, history};
use crate::ports::store::{Bucket, StoreError};
use crate::runtime::rfc3339;
use crate::sync::parallel_map;
use crate::web::access::{flag_query, number_query, optional_query};
use crate::web::failure::{from_history, from_kv, from_store};

/// Concurrent reads, and most pipelines with details on a page.
const THREADS_MAX: usize = 8;
const DETAILS_MAX: u64 = 1_000;
/// Maximum number of active jobs searched for the next due one.
const ACTIVE_MAX: usize = 100;

/// `GET /api/pipelines`
pub(super) fn list(pipelines: &Pipelines, request: &mut Request) -> Result<Response, ApiError> {
    let details = flag_query(request, "details")?;
    let count = number_query(request, "recent", 0..=JOBS_MAX)?.and_then(|count| usize::try_from(count).ok());
    let recent = count.filter(|count| *count > 0);
    let limit = number_query(request, "limit", 1..=DETAILS_MAX)?.unwrap_or(DETAILS_MAX);
    let invalid = |error: NameError| ApiError::new(ErrorCode::InvalidRequest, format!("after: {error}"));
    let after = optional_query(request, "after")?.map(Slug::parse).transpose().map_err(invalid)?;
    if details {
        let page = DetailsPage { after, limit: usize::try_from(limit).unwrap_or(usize::MAX), recent };
        let details = pipelines.details.run(&page, || load_details(pipelines, &page))?;
        return Ok(Response::json(200, &*details));
    }
    let slugs = pipelines::all(&*pipelines.store).map_err(from_store)?;
    Ok(Response::json(200, &Listed::Slugs(slugs.into_iter().map(String::from).collect())))
}

fn load_details(pipelines: &Pipelines, page: &DetailsPage) -> Result<Listed, ApiError> {
    let slugs = pipelines::all(&*pipelines.store).map_err(from_store)?;
    let mut later = slugs.into_iter().filter(|slug| page.after.as_ref().is_none_or(|after| slug > after));
    let shown: Vec<Slug> = later.by_ref().take(page.limit).collect();
    let truncated = later.next().is_some();
    let details = load_each(pipelines, &shown, page.recent)?;
    let recent_truncated = page.recent.is_some() && details.iter().any(|one| one.recent.is_none());
    let next = shown.last().filter(|_| truncated).map(Slug::to_string);
    Ok(Listed::Details(Details { pipelines: details, truncated, next, recent_truncated }))
}

fn load_each(pipelines: &Pipelines, slugs: &[Slug], count: Option<usize>) -> Result<Vec<Detail>, ApiError> {
    let budget = Budget::new();
    parallel_map(slugs, THREADS_MAX, |slug| {
        let recent_jobs = match count {
            Some(count) => {
                recent(&pipelines.store, &*pipelines.ports.index, &pipelines.summaries, slug, count, &budget)?
            }
            None => None,
        };
        detail(pipelines, slug, recent_jobs)
    })
}

/// Reads the config and the last job.
fn detail(pipelines: &Pipelines, slug: &Slug, recent_jobs: Option<RecentJobs>) -> Result<Detail, ApiError> {
    let config = read_config(pipelines, slug)?;
    let page = history::page(&*pipelines.store, &*pipelines.ports.registry, &*pipelines.ports.index, slug, None, 1)
        .map_err(from_history)?;
    let active = pipelines.ports.registry.active(slug, ACTIVE_MAX).map_err(from_kv)?;
    let waiting = active.iter().filter(|job| job.status == JobStatus::Queued).filter_map(|job| job.not_before);
    let window = pipelines.ports.schedule.window_due_at(slug).map_err(from_kv)?;
    let next_due = waiting.chain(window).min();
    let Config { state, title, problems, tables, auto_run } = config;
    Ok(Detail {
        slug: slug.to_string(),
        title,
        config: state,
        problems,
        tables,
        auto_run,
        last_job: page.jobs.first().map(last_job),
        next_due: next_due.map(rfc3339),
        rows: recent_jobs.as_ref().and_then(|recent_jobs| recent_jobs.rows),
        bytes: recent_jobs.as_ref().and_then(|recent_jobs| recent_jobs.bytes),
        recent: recent_jobs.map(|recent_jobs| recent_jobs.jobs),
    })
}

struct Config {
    state: ConfigState,
    title: Option<String>,
    problems: u64,
    tables: u64,
    auto_run: bool,
}

fn read_config(pipelines: &Pipelines, slug: &Slug) -> Result<Config, ApiError> {
    let of = |state, title, problems, tables, auto_run| Config { state, title, problems, tables, auto_run };
    let reader = match pipelines.store.get(Bucket::Pipelines, &config_key(slug), None) {
        Ok(reader) => reader,
        Err(StoreError::NotFound { .. }) => return Ok(of(ConfigState::Missing, None, 0, 0, true)),
        Err(error) => return Err(from_store(error)),
    };
    // A config that is too large or not UTF-8 is invalid, as in a run.
    let mut text = String::new();
    let mut body = std::io::Read::take(reader.body, CONFIG_BYTES_MAX as u64 + 1);
    let read = std::io::Read::read_to_string(&mut body, &mut text);
    if read.is_err() || text.len() > CONFIG_BYTES_MAX {
        return Ok(of(ConfigState::Invalid, None, 1, 0, true));
    }
    Ok(match validate::parse(&text) {
        Ok(p) => of(ConfigState::Valid, Some(p.title.clone()), 0, p.mappings.len() as u64, p.auto_run),
        Err(problems) => {
            let value = validate::unchecked(&text);
            let title = value.get("title").and_then(Value::as_str).map(|title| title.chars().take(200).collect());
            let tables = value.get("mappings").and_then(Value::as_array).map_or(0, Vec::len);
            let auto_run = value.get("auto_run").and_then(Value::as_bool).unwrap_or(true);
            of(ConfigState::Invalid, title, problems.len() as u64, tables as u64, auto_run)
        }
    })
}

fn last_job(job: &Job) -> LastJob {
    LastJob {
        job_id: job.job_id.to_string(),
        status: name_of(job.status),
        trigger: job.trigger.clone(),
        enqueued_at: rfc3339(job.enqueued_at),
        finished_at: job.finished_at.map(rfc3339),
        error: job.error.as_ref().map(|error| name_of(error.code)),
    }
}

/// The serialised name of a unit variant.
fn name_of(value: impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}
