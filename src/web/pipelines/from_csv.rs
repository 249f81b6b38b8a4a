//! The template `from-csv`: a config that is proposed from a file of the lake.

use serde_json::json;

use super::create::Contents;
use crate::domain::layout::pipeline_prefix;
use crate::domain::name::Slug;
use crate::domain::pipeline::document::VERSION;
use crate::http::{ApiError, ErrorCode};
use crate::ports::store::Bucket;
use crate::web::failure::from_store;
use crate::web::{Web, infer};

/// A pipeline with one table that is made of the file `key`, which is copied unless it lies in the pipeline already.
///
/// # Errors
/// `object_not_found`; `invalid_config` with why no config can be proposed; `s3_error`, `bucket_not_found`.
pub(super) fn propose(web: &Web, slug: &Slug, key: &str) -> Result<Contents<'static>, ApiError> {
    let prefix = pipeline_prefix(slug);
    let (name, copied) = match key.strip_prefix(&prefix) {
        Some(own) => (own, false),
        None => (key.rsplit('/').next().unwrap_or(key), true),
    };
    let mut config = proposal(web, key, slug.as_str())?;
    config["mappings"][0]["files"] = json!([globset::escape(name)]);
    let config = serde_json::to_string_pretty(&config).map_err(ApiError::internal)?;
    let copy = copied.then(|| (key.to_owned(), name.to_owned()));
    Ok(Contents { config: config.into(), files: &[], dashboards: &[], copy })
}

fn proposal(web: &Web, key: &str, title: &str) -> Result<serde_json::Value, ApiError> {
    if web.store.head(Bucket::Lake, key).map_err(from_store)?.is_none() {
        return Err(ApiError::new(ErrorCode::ObjectNotFound, format!("there is no object `{key}` in the lake")));
    }
    let mapping = infer::propose(web, key).map_err(|error| match error.code() {
        ErrorCode::InvalidRequest => ApiError::new(ErrorCode::InvalidConfig, error.to_string()),
        _ => error,
    })?;
    Ok(json!({ "version": VERSION, "title": title, "mappings": [mapping.mapping()] }))
}
