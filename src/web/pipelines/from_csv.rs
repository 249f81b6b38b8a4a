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
    config["mappings"][0]["files"] = json!([literal_glob(name)]);
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

/// The glob that matches this key alone.
fn literal_glob(key: &str) -> String {
    let mut glob = String::with_capacity(key.len());
    for c in key.chars() {
        match c {
            '*' | '?' | '[' | ']' | '{' | '}' | '!' => glob.extend(['[', c, ']']),
            c => glob.push(c),
        }
    }
    glob
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::pipeline::compile_glob;

    #[test]
    fn the_glob_of_a_key_matches_nothing_else() {
        for key in ["a.csv", "a/b c.csv", "a*b.csv", "[x]{y,z}?.csv", "!a.csv", "a[!b].csv", "über.csv"] {
            let glob = compile_glob(&literal_glob(key)).unwrap().compile_matcher();
            assert!(glob.is_match(key), "{key}");
            assert!(!glob.is_match(format!("x{key}")) && !glob.is_match("aab.csv"), "{key}");
        }
    }
}
