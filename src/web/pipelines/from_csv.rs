//! The template `from-csv`: a config that is proposed from a file of the lake.

use serde_json::json;

use super::create::Contents;
use crate::domain::layout::pipeline_prefix;
use crate::domain::name::Slug;
use crate::http::{ApiError, ErrorCode};
use crate::web::Web;

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
    Ok(Contents { config: config.into(), files: &[], copy })
}

fn proposal(web: &Web, key: &str, _title: &str) -> Result<serde_json::Value, ApiError> {
    let found = web.store.head(crate::ports::store::Bucket::Lake, key).map_err(crate::web::failure::from_store)?;
    if found.is_none() {
        return Err(ApiError::new(ErrorCode::ObjectNotFound, format!("there is no object `{key}` in the lake")));
    }
    Err(ApiError::new(ErrorCode::InvalidConfig, format!("no config can be proposed for `{key}`")))
}
