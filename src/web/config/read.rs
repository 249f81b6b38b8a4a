//! The config as it lies in the store.

use std::io::Read;

use serde::de::IgnoredAny;

use crate::domain::layout::config_key;
use crate::domain::limits::CONFIG_BYTES_MAX;
use crate::domain::name::Slug;
use crate::domain::problem::{Problem, ProblemKind};
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::ports::store::{Bucket, StoreError};
use crate::web::Web;
use crate::web::access::{quoted, slug_param};
use crate::web::failure::from_store;

/// Bytes that are no JSON (somebody else put them there) are `invalid_config` with the tag, so that a save can replace
/// exactly these.
pub(super) fn get(web: &Web, request: &mut Request) -> Result<Response, ApiError> {
    let slug = slug_param(request, "pipeline")?;
    let key = config_key(&slug);
    let reader = match web.store.get(Bucket::Pipelines, &key, None) {
        Ok(reader) => reader,
        Err(StoreError::NotFound { .. }) => return Err(missing(web, &slug)?),
        Err(error) => return Err(from_store(error)),
    };
    let mut bytes = Vec::new();
    // One byte more than is allowed tells that there are more.
    let read = reader.body.take(CONFIG_BYTES_MAX as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|error| ApiError::new(ErrorCode::S3Error, format!("reading `{key}`: {error}")))?;
    let tag = reader.meta.etag.as_ref().map(quoted);
    if let Err(problem) = json_text(&bytes) {
        let message = format!("what is stored as the config of `{slug}` is none: {}", problem.message);
        let error = ApiError::new(ErrorCode::InvalidConfig, message).with_problems([problem]);
        return Err(tag.into_iter().fold(error, |error, tag| error.with_header("ETag", tag)));
    }
    let response = Response::bytes(200, "application/json", bytes);
    Ok(tag.into_iter().fold(response, |response, tag| response.with_header("ETag", tag)))
}

fn missing(web: &Web, slug: &Slug) -> Result<ApiError, ApiError> {
    Ok(match web.exists(slug)? {
        true => ApiError::new(ErrorCode::PipelineConfigNotFound, format!("the pipeline `{slug}` has no config")),
        false => ApiError::new(ErrorCode::PipelineNotFound, format!("there is no pipeline `{slug}`")),
    })
}

/// The bytes as a JSON text of a fit size, whatever it says.
///
/// # Errors
/// What is wrong with them.
pub(super) fn json_text(bytes: &[u8]) -> Result<&str, Problem> {
    let problem = |kind, message: String| Problem::new(kind, "", message);
    if bytes.len() > CONFIG_BYTES_MAX {
        return Err(problem(ProblemKind::Limit, format!("expected at most {CONFIG_BYTES_MAX} bytes, found more")));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        problem(ProblemKind::Syntax, format!("expected UTF-8; byte {} is none", error.valid_up_to()))
    })?;
    // Reads without recursion, so that depth is no danger.
    serde_json::from_str::<IgnoredAny>(text)
        .map_err(|error| problem(ProblemKind::Syntax, format!("expected JSON: {error}")))?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_json_is_a_text_and_nothing_else_is() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        for good in ["{}", "null", " [1e999, \"\\ud800\", {\"a\":1,\"a\":2}]\n", deep.as_str()] {
            assert_eq!(json_text(good.as_bytes()), Ok(good));
        }
        let long = format!("\"{}\"", "x".repeat(CONFIG_BYTES_MAX));
        for (bad, kind) in [
            (&b""[..], ProblemKind::Syntax),
            (b"{", ProblemKind::Syntax),
            (b"{} {}", ProblemKind::Syntax),
            (b"// c\n{}", ProblemKind::Syntax),
            (b"\xef\xbb\xbf{}", ProblemKind::Syntax),
            (b"\"\xff\"", ProblemKind::Syntax),
            (b"{\0}", ProblemKind::Syntax),
            (long.as_bytes(), ProblemKind::Limit),
        ] {
            assert_eq!(json_text(bad).unwrap_err().kind, kind, "{:?}", &bad[..bad.len().min(20)]);
        }
    }
}
