//! Queries that people keep, an object each.
//!
//! Invariant: no two queries of a pipeline have the same name, whatever its case, also if they are saved at once by
//! several processes: a name is looked for and given under a lock of its own. A query is changed and deleted under a
//! lock of its id.

use std::cmp::Ordering;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization;

use super::Web;
use super::access::{if_match, slug_param, tagged};
use super::endpoint::Endpoint;
use super::exclusive::Exclusive;
use super::failure::from_store;
use crate::domain::digest::sha256_hex;
use crate::domain::job::JobId;
use crate::domain::job::record::time;
use crate::domain::layout::{saved_queries_prefix, saved_query_key};
use crate::domain::limits::LIST_PAGE_KEYS_MAX;
use crate::domain::name::Slug;
use crate::domain::text::is_bidi_control;
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::ports::store::{Bucket, ObjectMeta, Precondition};
use crate::runtime::failpoint;
use crate::sync::parallel_map;

/// Queries of a pipeline.
const QUERIES_MAX: usize = 500;
/// Longest name, in characters.
const NAME_CHARS_MAX: usize = 200;
/// Longest SQL, in bytes.
const SQL_BYTES_MAX: usize = 256 << 10;
/// Largest request, in bytes: JSON may need six for one.
const SAVE_BYTES_MAX: u64 = 1 << 20;
/// Largest object that is read, in bytes.
const OBJECT_BYTES_MAX: u64 = 2 << 20;
/// Objects that are read at a time.
const READERS: usize = 8;
/// Objects that are read in all: what others put beside the queries must not hide them.
const READ_MAX: usize = 2 * QUERIES_MAX;
/// Pages of keys in which they are looked for.
const LISTED_PAGES_MAX: usize = 20;

pub(super) fn endpoints() -> Vec<Endpoint> {
    let found = [ErrorCode::InvalidSlug, ErrorCode::PipelineNotFound, ErrorCode::QueryNotFound];
    vec![
        Endpoint::get("/api/p/{pipeline}/queries", "queries.list", "Lists the saved queries by name", list)
            .answers::<Queries>(200, "the queries")
            .errors(&found[..2]),
        Endpoint::post("/api/p/{pipeline}/queries", "queries.create", "Saves a query under a new name", create)
            .takes::<Save>(SAVE_BYTES_MAX)
            .answers::<SavedQuery>(201, "the query")
            .header("ETag")
            .errors(&found[..2])
            .errors(&[ErrorCode::NameTaken, ErrorCode::PipelineBusy]),
        Endpoint::get("/api/p/{pipeline}/queries/{id}", "queries.get", "Tells a saved query", get)
            .answers::<SavedQuery>(200, "the query")
            .header("ETag")
            .errors(&found),
        Endpoint::put("/api/p/{pipeline}/queries/{id}", "queries.update", "Changes a saved query", update)
            .takes::<Save>(SAVE_BYTES_MAX)
            .if_match()
            .answers::<SavedQuery>(200, "the query as it is now")
            .header("ETag")
            .errors(&found)
            .errors(&[ErrorCode::NameTaken, ErrorCode::PipelineBusy]),
        Endpoint::delete("/api/p/{pipeline}/queries/{id}", "queries.delete", "Deletes a saved query", delete)
            .answers::<Deleted>(200, "it is gone")
            .errors(&found),
    ]
}

/// A query that somebody keeps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SavedQuery {
    pub id: String,
    /// Unique in the pipeline, whatever its case.
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
    /// Shown on one line; unique in the pipeline, whatever its case.
    #[schemars(length(min = 1, max = 200))]
    name: String,
    #[schemars(length(min = 1))]
    sql: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DeletedQuery")]
struct Deleted {
    /// The id.
    deleted: String,
}

/// Every saved query of a pipeline, by name; what can't be read as one is left out.
///
/// # Errors
/// `s3_error`, `bucket_not_found`.
pub(in crate::web) fn all(web: &Web, pipeline: &Slug) -> Result<Vec<SavedQuery>, ApiError> {
    let ids = listed(web, pipeline)?;
    let found = parallel_map(&ids, READERS, |id| read(web, pipeline, id))?;
    let mut queries: Vec<_> = found.into_iter().flatten().map(|(_, query)| query).collect();
    queries.sort_by(by_name);
    Ok(queries)
}

/// The ids of a pipeline's queries, whatever else lies beside them.
fn listed(web: &Web, pipeline: &Slug) -> Result<Vec<SavedId>, ApiError> {
    let prefix = saved_queries_prefix(pipeline);
    let (mut ids, mut after) = (Vec::new(), None);
    for _ in 0..LISTED_PAGES_MAX {
        let page = web.store.list(Bucket::Pipelines, &prefix, None, after.as_deref(), LIST_PAGE_KEYS_MAX);
        let page = page.map_err(from_store)?;
        ids.extend(page.objects.iter().filter_map(|object| id_of(&object.key, &prefix)));
        after = page.next;
        if after.is_none() || ids.len() > READ_MAX {
            break;
        }
    }
    if after.is_some() || ids.len() > READ_MAX {
        tracing::warn!(%pipeline, "more objects than queries there may be: the rest is not shown");
        ids.truncate(READ_MAX);
    }
    Ok(ids)
}

fn by_name(a: &SavedQuery, b: &SavedQuery) -> Ordering {
    (folded(&a.name), &a.id).cmp(&(folded(&b.name), &b.id))
}

/// The form under which two names are the same.
fn folded(name: &str) -> String {
    name.trim().to_lowercase().nfc().collect()
}

/// Names a saved query in paths and keys: the alphabet of job ids.
type SavedId = JobId;

fn id_of(key: &str, prefix: &str) -> Option<SavedId> {
    SavedId::parse(key.strip_prefix(prefix)?.strip_suffix(".json")?).ok()
}

/// The query of an id, if there is one that can be read.
fn read(web: &Web, pipeline: &Slug, id: &SavedId) -> Result<Option<(ObjectMeta, SavedQuery)>, ApiError> {
    let key = saved_query_key(pipeline, id);
    let Some((meta, bytes)) = web.read_up_to(Bucket::Pipelines, &key, OBJECT_BYTES_MAX)? else { return Ok(None) };
    match serde_json::from_slice::<SavedQuery>(&bytes) {
        // Where it lies is what it is called: a copy has another place.
        Ok(query) => Ok(Some((meta, SavedQuery { id: id.to_string(), ..query }))),
        Err(error) => {
            tracing::warn!(%pipeline, key, %error, "an object that is no saved query is passed over");
            Ok(None)
        }
    }
}

fn list(web: &Web, request: &mut Request) -> Result<Response, ApiError> {
    let pipeline = slug_param(request, "pipeline")?;
    let queries = all(web, &pipeline)?;
    if queries.is_empty() {
        web.existing(request, "pipeline")?;
    }
    Ok(Response::json(200, &Queries { queries }))
}

fn create(web: &Web, request: &mut Request) -> Result<Response, ApiError> {
    let save = checked(request.json()?)?;
    let pipeline = web.existing(request, "pipeline")?;
    let lock = claim(web, &pipeline, &save.name)?;
    let others = all(web, &pipeline)?;
    if others.len() >= QUERIES_MAX {
        let message = format!("the pipeline has {QUERIES_MAX} saved queries already; delete some first");
        return Err(ApiError::new(ErrorCode::InvalidRequest, message));
    }
    check_free(&others, &save.name, None)?;
    let (id, now) = (SavedId::mint(), web.clock.now());
    let query = SavedQuery { id: id.to_string(), name: save.name, sql: save.sql, created_at: now, updated_at: now };
    let key = saved_query_key(&pipeline, &id);
    let put = || write(web, &lock, &key, &query, Precondition::IfNoneMatch);
    let meta = web.in_turn_of_existing(&pipeline, &key, put)?;
    Ok(answer(201, &query, &meta))
}

fn get(web: &Web, request: &mut Request) -> Result<Response, ApiError> {
    let (pipeline, id) = named(web, request)?;
    match read(web, &pipeline, &id)? {
        Some((meta, query)) => Ok(answer(200, &query, &meta)),
        None => Err(missing(web, request)),
    }
}

fn update(web: &Web, request: &mut Request) -> Result<Response, ApiError> {
    let wanted = if_match(request)?;
    let save = checked(request.json()?)?;
    let (pipeline, id) = named(web, request)?;
    let lock = exclusive(web, &pipeline, &id)?;
    let Some((meta, old)) = read(web, &pipeline, &id)? else { return Err(missing(web, request)) };
    let precondition = wanted.precondition(Some(&meta))?;
    let is_renamed = folded(&old.name) != folded(&save.name);
    // The write ends before either lock may run out, since this one is the younger.
    let _name = is_renamed.then(|| claim(web, &pipeline, &save.name)).transpose()?;
    if is_renamed {
        check_free(&all(web, &pipeline)?, &save.name, Some(&old.id))?;
    }
    let query = SavedQuery { name: save.name, sql: save.sql, updated_at: web.clock.now(), ..old };
    let key = saved_query_key(&pipeline, &id);
    let meta = web.in_turn_of_existing(&pipeline, &key, || write(web, &lock, &key, &query, precondition))?;
    Ok(answer(200, &query, &meta))
}

fn delete(web: &Web, request: &mut Request) -> Result<Response, ApiError> {
    let (pipeline, id) = named(web, request)?;
    let key = saved_query_key(&pipeline, &id);
    let lock = exclusive(web, &pipeline, &id)?;
    if web.store.head(Bucket::Pipelines, &key).map_err(from_store)?.is_none() {
        return Err(missing(web, request));
    }
    web.store.delete(Bucket::Pipelines, &[key], &lock.options()).map_err(from_store)?;
    Ok(Response::json(200, &Deleted { deleted: id.to_string() }))
}

fn exclusive<'a>(web: &'a Web, pipeline: &Slug, id: &SavedId) -> Result<Exclusive<'a>, ApiError> {
    web.exclusive(format!("queries/{pipeline}/{id}"))
}

/// The lock under which a name is given. If many requests race for one name, most are refused without waiting for its
/// holder: they would only learn that the name is taken.
fn claim<'a>(web: &'a Web, pipeline: &Slug, name: &str) -> Result<Exclusive<'a>, ApiError> {
    let lock = format!("queries/{pipeline}/name/{}", sha256_hex(folded(name).as_bytes()));
    web.exclusive_or_crowded(lock)?.ok_or_else(|| {
        let message = format!("another request is saving a query under the name `{name}`");
        ApiError::new(ErrorCode::NameTaken, message)
    })
}

fn write(
    web: &Web,
    lock: &Exclusive<'_>,
    key: &str,
    query: &SavedQuery,
    precondition: Precondition,
) -> Result<ObjectMeta, ApiError> {
    let body = serde_json::to_vec_pretty(query).map_err(ApiError::internal)?;
    failpoint::reach("saved_queries::write");
    web.store.put(Bucket::Pipelines, key, &body, &lock.options().with(precondition)).map_err(from_store)
}

fn answer(status: u16, query: &SavedQuery, meta: &ObjectMeta) -> Response {
    tagged(Response::json(status, query), meta.etag.as_ref())
}

/// Pipeline and id of the path. Another alphabet than that of ids is no query.
fn named(web: &Web, request: &Request) -> Result<(Slug, SavedId), ApiError> {
    let pipeline = slug_param(request, "pipeline")?;
    match SavedId::parse(request.param("id")) {
        Ok(id) => Ok((pipeline, id)),
        Err(_) => Err(missing(web, request)),
    }
}

/// What is said where there is no such query: perhaps there is no such pipeline.
fn missing(web: &Web, request: &Request) -> ApiError {
    match web.existing(request, "pipeline") {
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

/// Name and SQL as they are kept.
fn checked(save: Save) -> Result<Save, ApiError> {
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
        checked(Save { name: name.into(), sql: sql.into() }).map(|save| save.name).map_err(|error| error.code())
    }

    #[test]
    fn names_and_sql_are_bounded_and_visible() {
        assert_eq!(save("  Umsa\u{308}tze ", "SELECT 1").as_deref(), Ok("Umsätze"));
        for name in ["", " ", "a\nb", "a\u{202e}b", &"x".repeat(201)] {
            assert_eq!(save(name, "SELECT 1"), Err(ErrorCode::InvalidRequest), "{name:?}");
        }
        for sql in ["", " \n", "SELECT '\0'", &"x".repeat(SQL_BYTES_MAX + 1)] {
            assert_eq!(save("a", sql), Err(ErrorCode::InvalidRequest));
        }
    }

    #[test]
    fn names_are_the_same_whatever_their_case_and_form() {
        for (a, b) in [("Trips", "tRIPS"), ("É", "e\u{301}"), (" a", "a ")] {
            assert_eq!(folded(a), folded(b));
        }
        assert_ne!(folded("a b"), folded("ab"));
    }
}
