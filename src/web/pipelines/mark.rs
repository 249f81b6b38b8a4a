//! The mark on a pipeline that is being made: by a create, an import or a rename.
//!
//! Invariant: the mark comes before the first object of the pipeline and goes after the last; so an object without a
//! mark is of a pipeline that exists, and what a process that died left behind tells by its mark what it was. Whoever
//! asks for the same again continues it; for anything else the slug is taken, until it is deleted.

use serde::{Deserialize, Serialize};

use super::hold::Held;
use crate::domain::layout::{config_key, pipeline_prefix, unfinished_key};
use crate::domain::name::Slug;
use crate::http::{ApiError, ErrorCode};
use crate::pipelines;
use crate::ports::store::{Bucket, StoreError, WriteOptions};
use crate::runtime::failpoint::reach;
use crate::web::Web;
use crate::web::failure::from_store;

const MARK_BYTES_MAX: u64 = 64 << 10;

/// What is being done, and how far it has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mark {
    #[serde(flatten)]
    pub(super) wish: Wish,
    pub(super) stage: Stage,
}

/// What somebody asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "operation", rename_all = "snake_case")]
pub(super) enum Wish {
    Create {
        template: String,
        /// The lake object that it is made from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
    },
    Import {
        /// Of the archive.
        sha256: String,
    },
    Rename {
        from: Slug,
    },
    /// On the old name of a rename, from when all but the config is copied until nothing is left of it. It counts as
    /// long as the new name has the mark of that rename.
    Leave {
        to: Slug,
    },
    /// A mark that can't be read.
    #[serde(skip)]
    Unknown,
}

/// How far it has come. A config counts only after `Making`: before, somebody else has put it there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Stage {
    /// Objects may be missing.
    Making,
    /// All but the config is there.
    Made,
    /// Of a rename: the pipeline has this name, and of the old one only leftovers exist.
    Moved,
}

/// Where a wish stands when its turn comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begun {
    /// No object is there.
    Anew,
    /// Objects are there from a try that was cut off.
    Again,
    /// It was cut off after the pipeline was whole: but for the mark nothing is left to be done.
    Whole,
}

/// The mark on a slug. What is no mark of ours is one of something unknown.
///
/// # Errors
/// `s3_error`, `bucket_not_found`.
pub(super) fn read(web: &Web, slug: &Slug) -> Result<Option<Mark>, ApiError> {
    let key = unfinished_key(slug);
    let unknown = |why: &dyn std::fmt::Display| {
        tracing::warn!(pipeline = %slug, key, why = %why, "the mark of an unfinished pipeline can't be read");
        Some(Mark { wish: Wish::Unknown, stage: Stage::Making })
    };
    match web.store.head(Bucket::Pipelines, &key).map_err(from_store)? {
        None => return Ok(None),
        Some(meta) if meta.size > MARK_BYTES_MAX => return Ok(unknown(&"it is too large")),
        Some(_) => {}
    }
    let Some((_, bytes)) = web.read(Bucket::Pipelines, &key, MARK_BYTES_MAX)? else { return Ok(None) };
    Ok(serde_json::from_slice(&bytes).map_or_else(|error| unknown(&error), Some))
}

/// Whether the rename of `from` to `to` has begun to take `from` away.
///
/// # Errors
/// `s3_error`, `bucket_not_found`.
pub(super) fn leaves(web: &Web, from: &Slug, to: &Slug) -> Result<bool, ApiError> {
    Ok(read(web, from)?.is_some_and(|mark| mark.wish == Wish::Leave { to: to.clone() }))
}

/// # Errors
/// `pipeline_busy` if the slug is of something that a request which was cut off left half made or half moved; `s3_error`,
/// `bucket_not_found`.
pub(in crate::web) fn refuse_unfinished(web: &Web, slug: &Slug) -> Result<(), ApiError> {
    let Some(mark) = read(web, slug)? else { return Ok(()) };
    let Wish::Leave { to } = mark.wish else { return Err(half_made(slug)) };
    let rename = Wish::Rename { from: slug.clone() };
    if read(web, &to)?.is_some_and(|mark| mark.wish == rename) { Err(half_moved(slug, &to)) } else { Ok(()) }
}

/// Begins or continues to make the pipeline of the lock.
///
/// # Errors
/// `already_exists` if the slug is of something else.
pub(super) fn begin(web: &Web, held: &Held, wish: &Wish) -> Result<Begun, ApiError> {
    let slug = held.slug();
    match read(web, slug)? {
        Some(mark) if mark.wish == *wish => {
            if mark.is_whole(web, slug)? {
                return Ok(Begun::Whole);
            }
            advance(web, held, wish, Stage::Making)?;
            Ok(Begun::Again)
        }
        Some(_) => Err(unfinished(slug)),
        None if is_taken(web, slug, wish)? => Err(taken(slug)),
        None => {
            put(web, wish, Stage::Making, &held.create(), slug)?;
            reach("make::marked");
            Ok(Begun::Anew)
        }
    }
}

/// Whether the slug is of something that `wish` can't be made of: a file that lies in the lake of the pipeline to be is
/// its first.
fn is_taken(web: &Web, slug: &Slug, wish: &Wish) -> Result<bool, ApiError> {
    let is_in_use = |buckets: &[Bucket]| pipelines::is_in_use(&*web.store, slug, buckets).map_err(from_store);
    match wish {
        Wish::Create { key: Some(key), .. } if key.starts_with(&pipeline_prefix(slug)) => {
            is_in_use(&[Bucket::Pipelines, Bucket::Warehouse])
        }
        Wish::Create { .. } => is_in_use(&Bucket::ALL),
        Wish::Import { .. } | Wish::Rename { .. } | Wish::Leave { .. } | Wish::Unknown => web.exists(slug),
    }
}

/// Replaces the mark by one of another stage.
///
/// # Errors
/// `s3_error`, `bucket_not_found`, `pipeline_busy`.
pub(super) fn advance(web: &Web, held: &Held, wish: &Wish, stage: Stage) -> Result<(), ApiError> {
    put(web, wish, stage, &held.options(), held.slug())
}

fn put(web: &Web, wish: &Wish, stage: Stage, options: &WriteOptions<'_>, slug: &Slug) -> Result<(), ApiError> {
    let body = serde_json::to_vec(&Mark { wish: wish.clone(), stage }).map_err(ApiError::internal)?;
    match web.store.put(Bucket::Pipelines, &unfinished_key(slug), &body, options) {
        Err(StoreError::PreconditionFailed { .. }) => Err(unfinished(slug)),
        put => put.map(drop).map_err(from_store),
    }
}

impl Mark {
    /// Whether but for the mark, and for leftovers of a rename, nothing is left to be done.
    ///
    /// # Errors
    /// `s3_error`, `bucket_not_found`.
    pub(super) fn is_whole(&self, web: &Web, slug: &Slug) -> Result<bool, ApiError> {
        match self.stage {
            Stage::Making => Ok(false),
            Stage::Made => {
                let config = web.store.head(Bucket::Pipelines, &config_key(slug)).map_err(from_store)?;
                Ok(config.is_some())
            }
            Stage::Moved => Ok(true),
        }
    }
}

/// Takes the mark away: the pipeline is whole.
///
/// # Errors
/// `s3_error`, `bucket_not_found`, `pipeline_busy`.
pub(super) fn remove(web: &Web, held: &Held) -> Result<(), ApiError> {
    let key = unfinished_key(held.slug());
    web.store.delete(Bucket::Pipelines, &[key], &held.options()).map_err(from_store)?;
    reach("make::unmarked");
    Ok(())
}

/// Marks the old name of a rename: from now on it takes no writes.
///
/// # Errors
/// `s3_error`, `bucket_not_found`, `pipeline_busy`.
pub(super) fn leave(web: &Web, from: &Held, to: &Slug) -> Result<(), ApiError> {
    advance(web, from, &Wish::Leave { to: to.clone() }, Stage::Made)?;
    reach("rename::leaving");
    Ok(())
}

/// Takes the mark of [`leave`] away, when nothing else is left.
///
/// # Errors
/// `s3_error`, `bucket_not_found`, `pipeline_busy`.
pub(super) fn left(web: &Web, from: &Held) -> Result<(), ApiError> {
    let key = unfinished_key(from.slug());
    web.store.delete(Bucket::Pipelines, &[key], &from.options()).map_err(from_store)?;
    reach("rename::left");
    Ok(())
}

pub(super) fn taken(slug: &Slug) -> ApiError {
    ApiError::new(ErrorCode::AlreadyExists, format!("there is a pipeline `{slug}` already"))
}

pub(super) fn unfinished(slug: &Slug) -> ApiError {
    let message = format!(
        "`{slug}` was left unfinished by a create, an import or a rename that was cut off: repeat that, or delete `{slug}`"
    );
    ApiError::new(ErrorCode::AlreadyExists, message)
}

/// The answer to whoever wants to change, move or export what isn't whole.
pub(super) fn half_made(slug: &Slug) -> ApiError {
    let message = format!(
        "`{slug}` was left unfinished by a create, an import or a rename: repeat that first, or delete `{slug}`"
    );
    ApiError::new(ErrorCode::PipelineBusy, message)
}

fn half_moved(from: &Slug, to: &Slug) -> ApiError {
    let message = format!("the rename of `{from}` to `{to}` was cut off: repeat it first");
    ApiError::new(ErrorCode::PipelineBusy, message)
}

/// The answer to whoever wants to make what another holds: if it is there, it exists.
pub(super) fn taken_if_busy(web: &Web, slug: &Slug, error: ApiError) -> ApiError {
    let unmarked = || matches!(read(web, slug), Ok(None)) && matches!(web.exists(slug), Ok(true));
    if error.code() == ErrorCode::PipelineBusy && unmarked() { taken(slug) } else { error }
}
