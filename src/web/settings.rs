//! Workspace settings: names and starred pipelines, one document for all users.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization;

use super::access::{if_match, tagged};
use super::endpoint::Endpoint;
use super::failure::from_store;
use super::stores::Objects;
use crate::domain::layout::SETTINGS_KEY;
use crate::domain::name::Slug;
use crate::domain::text::is_bidi_control;
use crate::http::{ApiError, Request, Response};
use crate::ports::store::{Bucket, WriteOptions};

/// Largest document, stored or sent, in bytes.
const SETTINGS_BYTES_MAX: u64 = 256 << 10;
/// Longest name, in characters.
const NAME_CHARS_MAX: usize = 100;
/// Maximum number of starred pipelines.
const STARRED_MAX: usize = 1_000;

/// The service.
pub struct SettingsService {
    pub store: Objects,
}

pub(super) fn endpoints() -> Vec<Endpoint<SettingsService>> {
    vec![
        Endpoint::get("/api/settings", "settings.get", "Shows the workspace settings", get)
            .response::<Settings>(200, "the settings, or defaults")
            .header("ETag"),
        Endpoint::put("/api/settings", "settings.put", "Replaces the workspace settings", put)
            .takes::<NewSettings>(SETTINGS_BYTES_MAX)
            .if_match()
            .response::<Settings>(200, "the stored settings")
            .header("ETag"),
    ]
}

/// The workspace's settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Settings {
    /// The user's name.
    display_name: String,
    workspace_name: String,
    /// Slugs, in the order in which they were starred.
    starred: Vec<String>,
}

/// New settings. Missing fields are cleared; invalid slugs and unknown fields are dropped.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct NewSettings {
    display_name: String,
    workspace_name: String,
    starred: Vec<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { display_name: String::new(), workspace_name: "Lakemill".to_owned(), starred: Vec::new() }
    }
}

impl Settings {
    fn clean(self) -> Self {
        let mut seen = HashSet::new();
        let mut starred = self.starred;
        starred.retain(|slug| Slug::parse(slug).is_ok() && seen.insert(slug.clone()));
        starred.truncate(STARRED_MAX);
        Self { display_name: clean(&self.display_name), workspace_name: clean(&self.workspace_name), starred }
    }
}

/// A name on one line, without control characters and bidirectional formatting.
fn clean(text: &str) -> String {
    let blanked = text.nfc().map(|c| if matches!(c, '\t' | '\n' | '\r') { ' ' } else { c });
    let visible: String = blanked.filter(|c| !c.is_control() && !is_bidi_control(*c)).collect();
    let cut: String = visible.trim().chars().take(NAME_CHARS_MAX).collect();
    cut.trim_end().to_owned()
}

fn get(service: &SettingsService, _: &mut Request) -> Result<Response, ApiError> {
    let Some((meta, bytes)) = service.store.read_unless_larger(Bucket::Pipelines, SETTINGS_KEY, SETTINGS_BYTES_MAX)?
    else {
        return Ok(Response::json(200, &Settings::default()));
    };
    let settings = serde_json::from_slice::<Settings>(&bytes).map_or_else(
        |error| {
            tracing::warn!(key = SETTINGS_KEY, %error, "stored settings are malformed; using defaults");
            Settings::default()
        },
        Settings::clean,
    );
    Ok(tagged(Response::json(200, &settings), meta.etag.as_ref()))
}

fn put(service: &SettingsService, request: &mut Request) -> Result<Response, ApiError> {
    let wanted = if_match(request)?;
    let NewSettings { display_name, workspace_name, starred } = request.json()?;
    let settings = Settings { display_name, workspace_name, starred }.clean();
    let current = service.store.head(Bucket::Pipelines, SETTINGS_KEY).map_err(from_store)?;
    let options = WriteOptions::default().with(wanted.precondition(current.as_ref())?);
    let body = serde_json::to_vec_pretty(&settings).map_err(ApiError::internal)?;
    let meta = service.store.put(Bucket::Pipelines, SETTINGS_KEY, &body, &options).map_err(from_store)?;
    Ok(tagged(Response::json(200, &settings), meta.etag.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cleaned_to_one_line() {
        for (given, kept) in [
            ("  Data team \n", "Data team"),
            ("a\tb\r\nc", "a b  c"),
            ("\u{202e}evil\u{2066}\0\u{7f}", "evil"),
            ("e\u{301}", "é"),
            ("\u{200f} ", ""),
        ] {
            assert_eq!(clean(given), kept, "{given:?}");
        }
        assert_eq!(clean(&"é".repeat(500)).chars().count(), NAME_CHARS_MAX);
    }

    #[test]
    fn starred_slugs_are_valid_and_unique() {
        let starred = ["b", "a", "b", "../x", "A", ""].map(str::to_owned).to_vec();
        assert_eq!(Settings { starred, ..Settings::default() }.clean().starred, ["b", "a"]);
        let many = (0..2_000).map(|i| format!("p{i}")).collect();
        assert_eq!(Settings { starred: many, ..Settings::default() }.clean().starred.len(), STARRED_MAX);
    }
}
