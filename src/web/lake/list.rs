//! Lists one level of the lake.

use schemars::JsonSchema;
use serde::Serialize;
use unicode_normalization::{UnicodeNormalization, is_nfc};

use super::service::LakeService;
use super::state::{State, states};
use crate::domain::digest::sha256_hex;
use crate::domain::limits::LIST_PAGE_KEYS_MAX;
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::ports::store::{Bucket, ListPage, ObjectMeta};
use crate::runtime::rfc3339;
use crate::web::access::{check_prefix, flag_query, number_query, optional_query};
use crate::web::failure::from_store;

/// Default page size.
const PAGE_DEFAULT: u64 = 500;
/// Digits of the checksum by which page tokens are validated.
const CHECKSUM_DIGITS: usize = 16;

/// A page of one level.
#[derive(Serialize, JsonSchema)]
pub struct Level {
    prefix: String,
    /// Full prefixes, each with a trailing `/`.
    folders: Vec<String>,
    /// Includes folder markers, whose keys end in `/`.
    files: Vec<File>,
    /// Files whose names aren't valid keys (not UTF-8, for example), as displayable text: the first 100.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    skipped: Vec<String>,
    /// `after` of the next page; null on the last page.
    next: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct File {
    key: String,
    /// Bytes.
    size: u64,
    /// RFC 3339.
    modified: String,
    /// Null if the store lists without tags.
    etag: Option<String>,
    /// Its state, if requested; null for a file outside pipelines.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<Option<State>>,
}

impl File {
    fn of(meta: ObjectMeta, state: Option<Option<State>>) -> Self {
        let ObjectMeta { key, size, etag, modified } = meta;
        Self { key, size, modified: rfc3339(modified), etag: etag.map(|tag| tag.0), state }
    }
}

pub fn list(lake: &LakeService, request: &mut Request) -> Result<Response, ApiError> {
    let given = optional_query(request, "prefix")?.unwrap_or_default();
    check_prefix(given)?;
    let normal: String = given.nfc().collect();
    let limit = number_query(request, "limit", 1..=LIST_PAGE_KEYS_MAX as u64)?.unwrap_or(PAGE_DEFAULT);
    let limit = usize::try_from(limit).unwrap_or(LIST_PAGE_KEYS_MAX);
    let with_state = flag_query(request, "state")?;
    let after = optional_query(request, "after")?.map(verify_checksum).transpose()?;
    let page = |prefix: &str| {
        let list = |after, limit| lake.store.list(Bucket::Lake, prefix, Some('/'), after, limit);
        list(after, limit).map_err(|error| match after.map(|_| list(None, 1)) {
            // The store works but rejects the token, so the client made it up.
            Some(Ok(_)) => invalid_token(),
            Some(Err(_)) | None => from_store(error),
        })
    };
    // Other programs may have stored under a prefix in another normal form: exactly these bytes take precedence.
    let mut found = (given, page(given)?);
    if found.1 == ListPage::default() && !is_nfc(given) {
        found = (&normal, page(&normal)?);
    }
    let (prefix, ListPage { objects, prefixes: folders, next, skipped }) = found;
    let files = if with_state {
        let states = states(lake, &objects)?;
        objects.into_iter().zip(states).map(|(object, state)| File::of(object, Some(state))).collect()
    } else {
        objects.into_iter().map(|object| File::of(object, None)).collect()
    };
    let next = next.map(|next| add_checksum(&next));
    Ok(Response::json(200, &Level { prefix: prefix.to_owned(), folders, files, skipped, next }))
}

/// A store's page token with a checksum, so that made-up tokens don't reach the store.
fn add_checksum(token: &str) -> String {
    format!("{}.{token}", &sha256_hex(token.as_bytes())[..CHECKSUM_DIGITS])
}

fn verify_checksum(text: &str) -> Result<&str, ApiError> {
    let token = text.split_once('.').filter(|(_, token)| add_checksum(token) == text).map(|(_, token)| token);
    token.ok_or_else(invalid_token)
}

fn invalid_token() -> ApiError {
    ApiError::new(ErrorCode::InvalidRequest, "`after` is not the `next` of a page")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_tokens_round_trip_and_forgeries_fail() {
        assert_eq!(verify_checksum(&add_checksum("kpipelines/a.b/c")).unwrap(), "kpipelines/a.b/c");
        for made_up in ["", "x", "0000000000000000.k", "."] {
            assert!(verify_checksum(made_up).is_err(), "{made_up}");
        }
    }
}
