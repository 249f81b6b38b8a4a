//! Lists the pipelines.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::recent::{Budget, JOBS_MAX, Recent, RecentJob, recent};
use crate::domain::job::{Job, JobStatus};
use crate::domain::layout::config_key;
use crate::domain::limits::CONFIG_BYTES_MAX;
use crate::domain::name::Slug;
use crate::domain::pipeline::validate;
use crate::http::{ApiError, Request, Response};
use crate::pipelines::{self, history};
use crate::ports::store::{Bucket, StoreError};
use crate::runtime::rfc3339;
use crate::sync::parallel_map;
use crate::web::Web;
use crate::web::access::{flag_query, number_query};
use crate::web::failure::{from_history, from_kv, from_store};

/// Pipelines that are looked into at a time, and at most.
const THREADS_MAX: usize = 8;
const DETAILS_MAX: usize = 1_000;
/// Active jobs that are looked at for the next that is due.
const ACTIVE_MAX: usize = 100;

/// The slugs, in order; with `details` an entry each.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(in crate::web) enum Listed {
    Slugs(Vec<String>),
    Details(Details),
}

#[derive(Serialize, JsonSchema)]
pub(in crate::web) struct Details {
    pipelines: Vec<Detail>,
    /// There are more pipelines than are told of.
    truncated: bool,
    /// Of some pipelines the recent jobs are not told, since that would take too long; ask again.
    recent_truncated: bool,
}

#[derive(Serialize, JsonSchema)]
pub(in crate::web) struct Detail {
    slug: String,
    /// Of the config; null if there is none that can be read.
    title: Option<String>,
    config: ConfigState,
    /// Problems of the config that can be told without binding its expressions.
    problems: u64,
    /// Tables that the config declares.
    tables: u64,
    auto_run: bool,
    /// The one that was enqueued last.
    last_job: Option<LastJob>,
    /// When the next job is due that waits, or the next batch of files; RFC 3339.
    next_due: Option<String>,
    /// Of all its tables after the last of the recent jobs that completed; null if there is none, or recent jobs were
    /// not asked for.
    rows: Option<u64>,
    bytes: Option<u64>,
    /// The last jobs that have ended, the oldest first; null if they were not asked for, or take too long.
    recent: Option<Vec<RecentJob>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ConfigState {
    Valid,
    Invalid,
    Missing,
}

#[derive(Serialize, JsonSchema)]
struct LastJob {
    job_id: String,
    status: String,
    trigger: String,
    /// RFC 3339, as all times.
    enqueued_at: String,
    finished_at: Option<String>,
    /// The code of what it failed with.
    error: Option<String>,
}

/// `GET /api/pipelines`
pub(super) fn list(web: &Web, request: &mut Request) -> Result<Response, ApiError> {
    let details = flag_query(request, "details")?;
    let count = number_query(request, "recent", 0..=JOBS_MAX)?.and_then(|count| usize::try_from(count).ok());
    let count = count.filter(|count| *count > 0);
    if details {
        let told = web.details.run(&count, || tell_details(web, count))?;
        return Ok(Response::json(200, &*told));
    }
    let slugs = pipelines::all(&*web.store).map_err(from_store)?;
    Ok(Response::json(200, &Listed::Slugs(slugs.into_iter().map(String::from).collect())))
}

fn tell_details(web: &Web, count: Option<usize>) -> Result<Listed, ApiError> {
    let slugs = pipelines::all(&*web.store).map_err(from_store)?;
    let truncated = slugs.len() > DETAILS_MAX;
    let shown: Vec<Slug> = slugs.into_iter().take(DETAILS_MAX).collect();
    let details = look(web, &shown, count)?;
    let recent_truncated = count.is_some() && details.iter().any(|one| one.recent.is_none());
    Ok(Listed::Details(Details { pipelines: details, truncated, recent_truncated }))
}

fn look(web: &Web, slugs: &[Slug], count: Option<usize>) -> Result<Vec<Detail>, ApiError> {
    let budget = Budget::new();
    parallel_map(slugs, THREADS_MAX, |slug| {
        let told = match count {
            Some(count) => recent(web, slug, count, &budget)?,
            None => None,
        };
        detail(web, slug, told)
    })
}

/// One read of the config, one page of one job.
fn detail(web: &Web, slug: &Slug, told: Option<Recent>) -> Result<Detail, ApiError> {
    let config = read_config(web, slug)?;
    let page = history::page(&*web.store, &*web.kv, slug, None, 1).map_err(from_history)?;
    let active = web.kv.active(slug, ACTIVE_MAX).map_err(from_kv)?;
    let waiting = active.iter().filter(|job| job.status == JobStatus::Queued).filter_map(|job| job.not_before);
    let window = web.kv.window_due_at(slug).map_err(from_kv)?;
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
        rows: told.as_ref().and_then(|told| told.rows),
        bytes: told.as_ref().and_then(|told| told.bytes),
        recent: told.map(|told| told.jobs),
    })
}

struct Config {
    state: ConfigState,
    title: Option<String>,
    problems: u64,
    tables: u64,
    auto_run: bool,
}

fn read_config(web: &Web, slug: &Slug) -> Result<Config, ApiError> {
    let of = |state, title, problems, tables, auto_run| Config { state, title, problems, tables, auto_run };
    let reader = match web.store.get(Bucket::Pipelines, &config_key(slug), None) {
        Ok(reader) => reader,
        Err(StoreError::NotFound { .. }) => return Ok(of(ConfigState::Missing, None, 0, 0, true)),
        Err(error) => return Err(from_store(error)),
    };
    // One that is too large, or no text, is invalid as a run finds it.
    let mut text = String::new();
    let mut body = std::io::Read::take(reader.body, CONFIG_BYTES_MAX as u64 + 1);
    let read = std::io::Read::read_to_string(&mut body, &mut text);
    if read.is_err() || text.len() > CONFIG_BYTES_MAX {
        return Ok(of(ConfigState::Invalid, None, 1, 0, true));
    }
    Ok(match validate::parse(&text) {
        Ok(p) => of(ConfigState::Valid, Some(p.title.clone()), 0, p.mappings.len() as u64, p.auto_run),
        Err(problems) => {
            let value: Value = serde_json::from_str(&text).unwrap_or_default();
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

/// How a unit variant is written.
fn name_of(value: impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}
