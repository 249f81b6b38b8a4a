//! Saved queries, one object each.
//!
//! Invariant: the names of a pipeline's queries are unique, ignoring case, even if several processes save concurrently:
//! a name is checked and claimed under a lock on the name. A query is changed and deleted under a lock on its id.

use std::cmp::Ordering;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization;

use super::access::{if_match, slug_param, tagged};
use super::endpoint::Endpoint;
use super::failure::from_store;
use super::locks::{Locks, NamedLock};
use super::stores::Objects;
use crate::domain::digest::sha256_hex;
use crate::domain::job::JobId;
use crate::domain::job::record::time;
use crate::domain::layout::{saved_queries_prefix, saved_query_key};
use crate::domain::limits::LIST_PAGE_KEYS_MAX;
use crate::domain::name::Slug;
use crate::domain::text::is_bidi_control;
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::ports::store::{Bucket, ObjectMeta, Precondition};
use crate::runtime::{Clock, failpoint};
use crate::sync::parallel_map;

/// Maximum number of queries of a pipeline.
const QUERIES_MAX: usize = 500;
/// Longest name, in characters.
const NAME_CHARS_MAX: usize = 200;
/// Longest SQL, in bytes.
const SQL_BYTES_MAX: usize = 256 << 10;
/// Largest request, in bytes: JSON may escape a byte as six.
const SAVE_BYTES_MAX: u64 = 1 << 20;
/// Largest object, in bytes.
const OBJECT_BYTES_MAX: u64 = 2 << 20;
/// Concurrent reads.
const READERS: usize = 8;
/// Maximum number of objects read, more than queries, since foreign objects must not hide queries.
const READ_MAX: usize = 2 * QUERIES_MAX;
/// Maximum number of pages of a listing.
const LISTED_PAGES_MAX: usize = 20;

/// The service.
pub struct SavedQueries {
    pub store: Objects,
    pub clock: Arc<dyn Clock>,
    pub locks: Arc<Locks>,
}

pub(super) fn endpoints() -> Vec<Endpoint<SavedQueries>> {
    let found = [ErrorCode::InvalidSlug, ErrorCode::PipelineNotFound, ErrorCode::QueryNotFound];
    vec![
        Endpoint::get("/api/p/{pipeline}/queries", "queries.list", "Lists the saved queries, by name", list)
            .response::<Queries>(200, "the queries")
            .errors(&found[..2]),
        Endpoint::post("/api/p/{pipeline}/queries", "queries.create", "Saves a new query", create)
            .takes::<Save>(SAVE_BYTES_MAX)
            .response::<SavedQuery>(201, "the query")
            .header("ETag")
            .errors(&found[..2])
            .errors(&[ErrorCode::NameTaken, ErrorCode::PipelineBusy]),
        Endpoint::get("/api/p/{pipeline}/queries/{id}", "queries.get", "Shows a saved query", get)
            .response::<SavedQuery>(200, "the query")
            .header("ETag")
            .errors(&found),
        Endpoint::put("/api/p/{pipeline}/queries/{id}", "queries.update", "Changes a saved query", update)
            .takes::<Save>(SAVE_BYTES_MAX)
            .if_match()
            .response::<SavedQuery>(200, "the updated query")
            .header("ETag")
            .errors(&found)
            .errors(&[ErrorCode::NameTaken, ErrorCode::PipelineBusy]),
        Endpoint::delete("/api/p/{pipeline}/queries/{id}", "queries.delete", "Deletes a saved query", delete)
            .response::<Deleted>(200, "the query is deleted")
            .errors(&found),
    ]
}

/// A saved query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SavedQuery {
    pub id: String,
    /// Unique in the pipeline, ignoring case.
    pub name: String,
    pub sql: String,
    #[serde(with = "time")]
    #[schemars(with = "String")]
    pub created_at: DateTime<Utc>,
    #[serde(with = "time")]
    #[schemars(with = "String")]
    pub updated_at: DateTime<Utc>,
}

#[derive(Serialize, JsonSchema)]
struct Queries {
    queries: Vec<SavedQuery>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Save {
    /// One line; unique in the pipeline, ignoring case.
    #[schemars(length(min = 1, max = 200))]
    name: String,
    #[schemars(length(min = 1))]
    sql: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DeletedQuery")]
struct Deleted {
    /// The query's id.
    deleted: String,
}

/// All saved queries of a pipeline, by name; unreadable ones are skipped.
///
/// # Errors
/// `s3_error`, `bucket_not_found`.
pub fn all(saved: &SavedQueries, pipeline: &Slug) -> Result<Vec<SavedQuery>, ApiError> {
    let ids = listed(saved, pipeline)?;
    let found = parallel_map(&ids, READERS, |id| read(saved, pipeline, id))?;
    let mut queries: Vec<_> = found.into_iter().flatten().map(|(_, query)| query).collect();
    queries.sort_by(by_name);
    Ok(queries)
}

/// The ids of a pipeline's queries; foreign objects are skipped.
fn listed(saved: &SavedQueries, pipeline: &Slug) -> Result<Vec<SavedId>, ApiError> {
    let prefix = saved_queries_prefix(pipeline);
    let (mut ids, mut after) = (Vec::new(), None);
    for _ in 0..LISTED_PAGES_MAX {
        let page = saved.store.list(Bucket::Pipelines, &prefix, None, after.as_deref(), LIST_PAGE_KEYS_MAX);
        let page = page.map_err(from_store)?;
        ids.extend(page.objects.iter().filter_map(|object| id_of(&object.key, &prefix)));
        after = page.next;
        if after.is_none() || ids.len() > READ_MAX {
            break;
        }
    }
    if after.is_some() || ids.len() > READ_MAX {
        tracing::warn!(%pipeline, "too many saved queries; the rest is not shown");
        ids.truncate(READ_MAX);
    }
    Ok(ids)
}

fn by_name(a: &SavedQuery, b: &SavedQuery) -> Ordering {
    (folded(&a.name), &a.id).cmp(&(folded(&b.name), &b.id))
}

/// The form in which names are compared.
fn folded(name: &str) -> String {
    name.trim().to_lowercase().nfc().collect()
}

/// The id of a saved query: it has the alphabet of job ids.
type SavedId = JobId;

fn id_of(key: &str, prefix: &str) -> Option<SavedId> {
    SavedId::parse(key.strip_prefix(prefix)?.strip_suffix(".json")?).ok()
}

/// Reads a query; `None` if it doesn't exist or is unreadable.
fn read(saved: &SavedQueries, pipeline: &Slug, id: &SavedId) -> Result<Option<(ObjectMeta, SavedQuery)>, ApiError> {
    let key = saved_query_key(pipeline, id);
    let Some((meta, bytes)) = saved.store.read_unless_larger(Bucket::Pipelines, &key, OBJECT_BYTES_MAX)? else {
        return Ok(None);
    };
    match serde_json::from_slice::<SavedQuery>(&bytes) {
        // The key determines the id: a copied object has another.
        Ok(query) => Ok(Some((meta, SavedQuery { id: id.to_string(), ..query }))),
        Err(error) => {
            tracing::warn!(%pipeline, key, %error, "saved query is unreadable; skipped");
            Ok(None)
        }
    }
}

fn list(saved: &SavedQueries, request: &mut Request) -> Result<Response, ApiError> {
    let pipeline = slug_param(request, "pipeline")?;
    let queries = all(saved, &pipeline)?;
    if queries.is_empty() {
        saved.store.existing(request, "pipeline")?;
    }
    Ok(Response::json(200, &Queries { queries }))
}

fn create(saved: &SavedQueries, request: &mut Request) -> Result<Response, ApiError> {
    let save = validated(request.json()?)?;
    let pipeline = saved.store.existing(request, "pipeline")?;
    let lock = claim(saved, &pipeline, &save.name)?;
    let others = all(saved, &pipeline)?;
    if others.len() >= QUERIES_MAX {
        let message = format!("the pipeline already has {QUERIES_MAX} saved queries; delete some first");
        return Err(ApiError::new(ErrorCode::InvalidRequest, message));
    }
    check_free(&others, &save.name, None)?;
    let (id, now) = (SavedId::mint(), saved.clock.now());
    let query = SavedQuery { id: id.to_string(), name: save.name, sql: save.sql, created_at: now, updated_at: now };
    let key = saved_query_key(&pipeline, &id);
    let put = || write(saved, &lock, &key, &query, Precondition::IfNoneMatch);
    let meta = saved.locks.with_write_lock_of_existing(&pipeline, &key, put)?;
    Ok(answer(201, &query, &meta))
}

fn get(saved: &SavedQueries, request: &mut Request) -> Result<Response, ApiError> {
    let (pipeline, id) = path_params(saved, request)?;
    match read(saved, &pipeline, &id)? {
        Some((meta, query)) => Ok(answer(200, &query, &meta)),
        None => Err(missing(saved, request)),
    }
}

fn update(saved: &SavedQueries, request: &mut Request) -> Result<Response, ApiError> {
    let wanted = if_match(request)?;
    let save = validated(request.json()?)?;
    let (pipeline, id) = path_params(saved, request)?;
    let lock = lock(saved, &pipeline, &id)?;
    let Some((meta, old)) = read(saved, &pipeline, &id)? else { return Err(missing(saved, request)) };
    let precondition = wanted.precondition(Some(&meta))?;
    let is_renamed = folded(&old.name) != folded(&save.name);
    // The write has the deadline of the other, older lock.
    let _name = is_renamed.then(|| claim(saved, &pipeline, &save.name)).transpose()?;
    if is_renamed {
        check_free(&all(saved, &pipeline)?, &save.name, Some(&old.id))?;
    }
    let query = SavedQuery { name: save.name, sql: save.sql, updated_at: saved.clock.now(), ..old };
    let key = saved_query_key(&pipeline, &id);
    let meta =
        saved.locks.with_write_lock_of_existing(&pipeline, &key, || write(saved, &lock, &key, &query, precondition))?;
    Ok(answer(200, &query, &meta))
}

fn delete(saved: &SavedQueries, request: &mut Request) -> Result<Response, ApiError> {
    let (pipeline, id) = path_params(saved, request)?;
    let key = saved_query_key(&pipeline, &id);
    let lock = lock(saved, &pipeline, &id)?;
    if saved.store.head(Bucket::Pipelines, &key).map_err(from_store)?.is_none() {
        return Err(missing(saved, request));
    }
    saved.store.delete(Bucket::Pipelines, &[key], &lock.options()).map_err(from_store)?;
    Ok(Response::json(200, &Deleted { deleted: id.to_string() }))
}

fn lock<'a>(saved: &'a SavedQueries, pipeline: &Slug, id: &SavedId) -> Result<NamedLock<'a>, ApiError> {
    saved.locks.named(&format!("queries/{pipeline}/{id}"))
}

/// The lock under which a name is taken. If many requests race for a name, most are rejected without waiting: they would
/// only learn that it is taken.
fn claim<'a>(saved: &'a SavedQueries, pipeline: &Slug, name: &str) -> Result<NamedLock<'a>, ApiError> {
    let lock = format!("queries/{pipeline}/name/{}", sha256_hex(folded(name).as_bytes()));
    saved.locks.named_unless_contended(&lock)?.ok_or_else(|| {
        let message = format!("another request is saving a query with the name `{name}`");
        ApiError::new(ErrorCode::NameTaken, message)
    })
}

fn write(
    saved: &SavedQueries,
    lock: &NamedLock<'_>,
    key: &str,
    query: &SavedQuery,
    precondition: Precondition,
) -> Result<ObjectMeta, ApiError> {
    let body = serde_json::to_vec_pretty(query).map_err(ApiError::internal)?;
    failpoint::reach("saved_queries::write");
    saved.store.put(Bucket::Pipelines, key, &body, &lock.options().with(precondition)).map_err(from_store)
}

fn answer(status: u16, query: &SavedQuery, meta: &ObjectMeta) -> Response {
    tagged(Response::json(status, query), meta.etag.as_ref())
}

/// Parses pipeline and id of the path. A malformed id is an unknown query.
fn path_params(saved: &SavedQueries, request: &Request) -> Result<(Slug, SavedId), ApiError> {
    let pipeline = slug_param(request, "pipeline")?;
    match SavedId::parse(request.param("id")) {
        Ok(id) => Ok((pipeline, id)),
        Err(_) => Err(missing(saved, request)),
    }
}

/// The error for an unknown query: the pipeline may be unknown, too.
fn missing(saved: &SavedQueries, request: &Request) -> ApiError {
    match saved.store.existing(request, "pipeline") {
        Ok(_) => ApiError::of(ErrorCode::QueryNotFound),
        Err(error) => error,
    }
}

fn check_free(others: &[SavedQuery], name: &str, own: Option<&str>) -> Result<(), ApiError> {
    let wanted = folded(name);
    match others.iter().find(|other| Some(other.id.as_str()) != own && folded(&other.name) == wanted) {
        Some(other) => Err(ApiError::new(ErrorCode::NameTaken, format!("another query has the name `{}`", other.name))),
        None => Ok(()),
    }
}

/// Validates and normalises a query.
fn validated(save: Save) -> Result<Save, ApiError> {
    let refuse = |message: String| Err(ApiError::new(ErrorCode::InvalidRequest, message));
    let name: String = save.name.trim().nfc().collect();
    let chars = name.chars().count();
    if !(1..=NAME_CHARS_MAX).contains(&chars) {
        return refuse(format!("`name`: expected 1 to {NAME_CHARS_MAX} characters, found {chars}"));
    }
    if name.chars().any(|c| c.is_control() || is_bidi_control(c)) {
        return refuse("`name`: expected no control or bidirectional formatting characters".to_owned());
    }
    if save.sql.trim().is_empty() || save.sql.len() > SQL_BYTES_MAX {
        return refuse(format!("`sql`: expected 1 to {SQL_BYTES_MAX} bytes, found {}", save.sql.trim().len()));
    }
    if save.sql.contains('\0') {
        return refuse("`sql`: expected no NUL".to_owned());
    }
    Ok(Save { name, sql: save.sql })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn save(name: &str, sql: &str) -> Result<String, ErrorCode> {
        validated(Save { name: name.into(), sql: sql.into() }).map(|save| save.name).map_err(|error| error.code())
    }

    #[test]
    fn names_and_sql_are_validated() {
        assert_eq!(save("  Umsa\u{308}tze ", "SELECT 1").as_deref(), Ok("Umsätze"));
        for name in ["", " ", "a\nb", "a\u{202e}b", &"x".repeat(201)] {
            assert_eq!(save(name, "SELECT 1"), Err(ErrorCode::InvalidRequest), "{name:?}");
        }
        for sql in ["", " \n", "SELECT '\0'", &"x".repeat(SQL_BYTES_MAX + 1)] {
            assert_eq!(save("a", sql), Err(ErrorCode::InvalidRequest));
        }
    }

    #[test]
    fn names_compare_ignoring_case_and_normal_form() {
        for (a, b) in [("Trips", "tRIPS"), ("É", "e\u{301}"), (" a", "a ")] {
            assert_eq!(folded(a), folded(b));
        }
        assert_ne!(folded("a b"), folded("ab"));
    }
}
