//! One level of the lake.

use schemars::JsonSchema;
use serde::Serialize;
use unicode_normalization::{UnicodeNormalization, is_nfc};

use super::state::{State, states};
use crate::domain::digest::sha256_hex;
use crate::domain::limits::LIST_PAGE_KEYS_MAX;
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::ports::store::{Bucket, ListPage, ObjectMeta};
use crate::runtime::rfc3339;
use crate::web::Web;
use crate::web::access::{check_prefix, flag_query, number_query, optional_query};
use crate::web::failure::from_store;

/// Folders and files of a page where the request doesn't say.
const PAGE_DEFAULT: u64 = 500;
/// Digits by which a page's token is known as ours.
const SEAL_DIGITS: usize = 16;

/// A page of one level.
#[derive(Serialize, JsonSchema)]
pub struct Level {
    prefix: String,
    /// Whole prefixes, each with a `/` at its end.
    folders: Vec<String>,
    /// Also folder markers, whose keys end in `/`.
    files: Vec<File>,
    /// What can't be reached, since its name is no key (not UTF-8, for example): what the names look like, the first 100.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    skipped: Vec<String>,
    /// Give it back as `after` for what comes after; null on the last page.
    next: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct File {
    key: String,
    /// Bytes.
    size: u64,
    /// RFC 3339.
    modified: String,
    /// Null where the store lists without tags.
    etag: Option<String>,
    /// What has become of it, if that was asked for; null for a file of no pipeline.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<Option<State>>,
}

impl File {
    fn of(meta: ObjectMeta, state: Option<Option<State>>) -> Self {
        let ObjectMeta { key, size, etag, modified } = meta;
        Self { key, size, modified: rfc3339(modified), etag: etag.map(|tag| tag.0), state }
    }
}

pub fn list(web: &Web, request: &mut Request) -> Result<Response, ApiError> {
    let given = optional_query(request, "prefix")?.unwrap_or_default();
    check_prefix(given)?;
    let normal: String = given.nfc().collect();
    let limit = number_query(request, "limit", 1..=LIST_PAGE_KEYS_MAX as u64)?.unwrap_or(PAGE_DEFAULT);
    let limit = usize::try_from(limit).unwrap_or(LIST_PAGE_KEYS_MAX);
    let with_state = flag_query(request, "state")?;
    let after = optional_query(request, "after")?.map(opened).transpose()?;
    let page = |prefix: &str| {
        let list = |after, limit| web.store.list(Bucket::Lake, prefix, Some('/'), after, limit);
        list(after, limit).map_err(|error| match after.map(|_| list(None, 1)) {
            // It lists, but not from there: others may make up tokens that look like ours.
            Some(Ok(_)) => no_token(),
            Some(Err(_)) | None => from_store(error),
        })
    };
    // Others may have stored under a prefix in another normal form: if there is anything under these very bytes, it is
    // meant.
    let mut found = (given, page(given)?);
    if found.1 == ListPage::default() && !is_nfc(given) {
        found = (&normal, page(&normal)?);
    }
    let (prefix, ListPage { objects, prefixes: folders, next, skipped }) = found;
    let files = if with_state {
        let states = states(web, &objects)?;
        objects.into_iter().zip(states).map(|(object, state)| File::of(object, Some(state))).collect()
    } else {
        objects.into_iter().map(|object| File::of(object, None)).collect()
    };
    let next = next.map(|next| sealed(&next));
    Ok(Response::json(200, &Level { prefix: prefix.to_owned(), folders, files, skipped, next }))
}

/// A store's token as clients get it: so that what a client made up is no failure of the store.
fn sealed(token: &str) -> String {
    format!("{}.{token}", &sha256_hex(token.as_bytes())[..SEAL_DIGITS])
}

fn opened(text: &str) -> Result<&str, ApiError> {
    let token = text.split_once('.').filter(|(_, token)| sealed(token) == text).map(|(_, token)| token);
    token.ok_or_else(no_token)
}

fn no_token() -> ApiError {
    ApiError::new(ErrorCode::InvalidRequest, "`after` is not what `next` of a page said")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_comes_back_as_it_was_given_or_not_at_all() {
        assert_eq!(opened(&sealed("kpipelines/a.b/c")).unwrap(), "kpipelines/a.b/c");
        for made_up in ["", "x", "0000000000000000.k", "."] {
            assert!(opened(made_up).is_err(), "{made_up}");
        }
    }
}
