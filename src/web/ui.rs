//! The browser UI: the files that Vite made of `static/`, within the binary.
//!
//! Invariants:
//! - a file under `assets/` has a hash of its content in its name, so browsers keep it for good; everything else is asked
//!   for again under its tag;
//! - a path of the UI answers with the page, whatever it names: the page itself says what isn't there. So it does for
//!   any other path that a browser wants to show, with the status 404.
//!
//! Must not: ask for a session; the page has no data, and shows the login.

use std::borrow::Cow;
use std::path::{Component, Path, PathBuf};

use rust_embed::Embed;
use sha2::{Digest, Sha256};

use super::Web;
use super::endpoint::Endpoint;
use super::service::{API, Credential};
use crate::domain::digest::hex;
use crate::http::{ApiError, ErrorCode, Method, Request, Response, Route};

/// Where the page answers: the places of the UI's own router (`static/src/app.tsx`).
const PLACES: &[(&str, &str)] = &[
    ("/", "ui.home"),
    ("/login", "ui.login"),
    ("/new", "ui.new"),
    ("/lake", "ui.lake"),
    ("/settings", "ui.settings"),
    ("/p/{place...}", "ui.pipeline"),
];
const PAGE: &str = "index.html";
/// The folder of the files that have a hash in their names.
const KEPT: &str = "assets/";
const HTML: &str = "text/html; charset=utf-8";
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";
/// A year in seconds, the most that RFC 9111's readers take for good.
const FOR_GOOD: &str = "public, max-age=31536000, immutable";
/// Kept, but asked for again before each use.
const ASK_AGAIN: &str = "no-cache";
/// Encodings that the build made beforehand (`static/compress.ts`), the best first.
const ENCODINGS: &[(&str, &str)] = &[("br", ".br"), ("gzip", ".gz")];
/// A file of a UI under development: bundles are much smaller.
const FILE_BYTES_MAX: u64 = 64 << 20;
const ABSENT: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Lakemill</title>\
    <h1>This binary was built without its UI</h1><p>The JSON API works. For the UI, run <code>scripts/ui build</code> \
    and build the binary again.</p></html>";

/// What was built before the binary was; empty if nothing was.
#[derive(Embed)]
#[folder = "static/dist"]
#[allow_missing = true]
struct Built;

/// The files of the UI.
pub(in crate::web) struct Ui {
    /// Read from here instead, at each request.
    folder: Option<PathBuf>,
}

struct Found {
    bytes: Cow<'static, [u8]>,
    /// Of its content, in quotes.
    tag: String,
}

impl Ui {
    pub(in crate::web) fn new(folder: Option<PathBuf>) -> Self {
        Self { folder }
    }

    fn find(&self, name: &str) -> Option<Found> {
        let Some(folder) = &self.folder else {
            let file = Built::get(name)?;
            return Some(Found { tag: tag(&file.metadata.sha256_hash()), bytes: file.data });
        };
        let plain = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
        let path = folder.join(name);
        let small = plain && std::fs::metadata(&path).is_ok_and(|meta| meta.is_file() && meta.len() <= FILE_BYTES_MAX);
        let bytes = small.then(|| std::fs::read(path).ok()).flatten()?;
        Some(Found { tag: tag(&Sha256::digest(&bytes).into()), bytes: Cow::Owned(bytes) })
    }

    /// The file in the best encoding that the client takes, or nothing if it still has it.
    fn answer(&self, request: &Request, name: &str) -> Option<Response> {
        let keeping = if name.starts_with(KEPT) { FOR_GOOD } else { ASK_AGAIN };
        let accepted = request.header("accept-encoding").unwrap_or_default();
        let packed = ENCODINGS
            .iter()
            .filter(|(encoding, _)| takes(accepted, encoding))
            .find_map(|(encoding, suffix)| self.find(&format!("{name}{suffix}")).map(|found| (found, Some(*encoding))));
        let (found, encoding) = packed.or_else(|| self.find(name).map(|found| (found, None)))?;
        let known = request.header("if-none-match").is_some_and(|tags| lists(tags, &found.tag));
        let response = if known { Response::empty(304) } else { Response::bytes(200, content_type(name), found.bytes) };
        let response = response
            .with_header("ETag", found.tag)
            .with_header("Vary", "Accept-Encoding")
            .with_header("Cache-Control", keeping);
        Some(match encoding {
            Some(encoding) if !known => response.with_header("Content-Encoding", encoding),
            Some(_) | None => response,
        })
    }
}

fn tag(digest: &[u8; 32]) -> String {
    format!("\"{}\"", hex(&digest[..16]))
}

/// Whether an `Accept-Encoding` or `Accept` has the thing by its name, and doesn't refuse it (`q=0`).
fn takes(accepted: &str, wanted: &str) -> bool {
    accepted.split(',').any(|item| {
        let mut parts = item.split(';').map(str::trim);
        let named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(wanted));
        let refused =
            parts.any(|part| part.strip_prefix("q=").and_then(|q| q.parse::<f32>().ok()).is_some_and(|q| q <= 0.0));
        named && !refused
    })
}

/// Whether an `If-None-Match` has the tag (RFC 9110 compares these weakly).
fn lists(tags: &str, own: &str) -> bool {
    tags.split(',').map(str::trim).any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == own)
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("js") => JAVASCRIPT,
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => SVG,
        Some("html") => HTML,
        Some("png") => "image/png",
        Some("woff2") => "font/woff2",
        Some("json") => "application/json",
        Some(_) | None => "application/octet-stream",
    }
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    let open = |endpoint: Endpoint, content_type| {
        let endpoint = endpoint.with_credential(Credential::Nothing).light();
        endpoint
            .answers_bytes(200, content_type, "the file, packed if the client takes that")
            .header("ETag")
            .header("Vary")
            .answers_nothing(304, "the client has it")
            .header("ETag")
            .errors(&[ErrorCode::NotFound])
    };
    let places =
        PLACES.iter().map(|(pattern, id)| open(Endpoint::get(pattern, id, "The page of the browser UI", page), HTML));
    let files = [
        open(Endpoint::get("/assets/{name...}", "ui.asset", "A script, style or picture of the UI", file), "*/*"),
        open(Endpoint::get("/theme.js", "ui.theme", "Sets the theme before the page is drawn", file), JAVASCRIPT),
        open(Endpoint::get("/favicon.svg", "ui.icon", "The icon of the UI", file), SVG),
    ];
    places.chain(files).collect()
}

/// What answers where no other row does.
pub(super) fn nowhere() -> Route<Web> {
    Route::new(Method::Get, "/{elsewhere...}", Credential::Nothing, elsewhere).light()
}

#[expect(clippy::unnecessary_wraps, reason = "the form of a handler")]
fn page(web: &Web, request: &mut Request) -> Result<Response, ApiError> {
    Ok(web.ui.answer(request, PAGE).unwrap_or_else(|| Response::bytes(200, HTML, ABSENT.as_bytes())))
}

/// The page for a browser that wants to show what isn't there; who asks for data is told as everywhere.
fn elsewhere(web: &Web, request: &mut Request) -> Result<Response, ApiError> {
    let shows = request.header("accept").is_some_and(|accepted| takes(accepted, "text/html"));
    if !shows || request.head().is_under(API) {
        return Err(ApiError::of(ErrorCode::NotFound));
    }
    let page = web.ui.find(PAGE).map_or(Cow::Borrowed(ABSENT.as_bytes()), |found| found.bytes);
    Ok(Response::bytes(404, HTML, page).with_header("Vary", "Accept"))
}

/// A file at its own path.
fn file(web: &Web, request: &mut Request) -> Result<Response, ApiError> {
    let name = request.head().segments().join("/");
    web.ui.answer(request, &name).ok_or_else(|| ApiError::of(ErrorCode::NotFound))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encoding_is_taken_unless_its_weight_is_nothing() {
        assert!(takes("gzip, deflate, br", "br"));
        assert!(takes("GZIP;q=0.5", "gzip"));
        assert!(!takes("br;q=0, gzip", "br"));
        assert!(!takes("identity", "br"));
        assert!(!takes("", "gzip"));
    }

    #[test]
    fn a_tag_is_known_from_a_list_and_in_its_weak_form() {
        assert!(lists("\"a\", W/\"b\"", "\"b\""));
        assert!(lists("*", "\"b\""));
        assert!(!lists("\"bb\"", "\"b\""));
    }

    #[test]
    fn a_folder_is_left_by_no_name() {
        let outer = tempfile::tempdir().unwrap();
        std::fs::create_dir(outer.path().join("dist")).unwrap();
        std::fs::write(outer.path().join("secret"), "s").unwrap();
        std::fs::write(outer.path().join("dist/a.js"), "1").unwrap();
        let ui = Ui::new(Some(outer.path().join("dist")));
        assert!(ui.find("a.js").is_some());
        for name in ["../secret", "./../secret", "a/../../secret", "", ".", "/etc/passwd"] {
            assert!(ui.find(name).is_none(), "{name}");
        }
    }
}
