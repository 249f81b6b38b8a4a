//! The browser UI: the files that Vite builds from `static/`, embedded in the binary.
//!
//! Invariants:
//! - a file under `assets/` has a hash of its content in its name, so browsers cache it forever; they revalidate all other
//!   files by tag;
//! - all paths of the UI serve one page, whose own router shows what doesn't exist. So do other paths that a browser
//!   navigates to, with status 404.
//!
//! Must not: require a session; the page holds no data and shows the login.

use std::borrow::Cow;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use flate2::read::MultiGzDecoder;
use rust_embed::Embed;
use sha2::{Digest, Sha256};

use super::access::API;
use super::endpoint::{Credential, Endpoint};
use crate::domain::digest::hex;
use crate::http::{ApiError, ErrorCode, Request, Response};

/// Paths that serve the page: those of the UI's router (`static/src/app.tsx`).
const PAGES: &[(&str, &str)] = &[
    ("/", "ui.home"),
    ("/login", "ui.login"),
    ("/new", "ui.new"),
    ("/lake", "ui.lake"),
    ("/jobs", "ui.jobs"),
    ("/settings", "ui.settings"),
    ("/p/{place...}", "ui.pipeline"),
];
const PAGE: &str = "index.html";
/// The folder of files with a hash in their names.
const HASHED: &str = "assets/";
const HTML: &str = "text/html; charset=utf-8";
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";
/// A year, which caches treat as forever.
const IMMUTABLE: &str = "public, max-age=31536000, immutable";
/// Cached, but revalidated before each use.
const REVALIDATE: &str = "no-cache";
/// Encodings that the build provides (`static/compress.ts`), the best first.
const ENCODINGS: &[(&str, &str)] = &[("br", ".br"), ("gzip", ".gz")];
/// Largest file of a UI under development, in bytes: bundles are much smaller.
const FILE_BYTES_MAX: u64 = 64 << 20;
const NOT_BUILT: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Lakemill</title>\
    <h1>This binary was built without its UI</h1><p>The JSON API works. For the UI, run <code>scripts/ui build</code> \
    and build the binary again.</p></html>";

/// The built UI; empty if it wasn't built before the binary. Scripts and styles are in it in compressed form only.
#[derive(Embed)]
#[folder = "static/dist"]
#[exclude = "assets/*.js"]
#[exclude = "assets/*.css"]
#[allow_missing = true]
struct Built;

/// The service.
pub struct Ui {
    /// Reads files from here instead, at each request.
    folder: Option<PathBuf>,
}

struct FoundFile {
    bytes: Cow<'static, [u8]>,
    /// Quoted hash of its content.
    tag: String,
}

impl Ui {
    pub fn new(folder: Option<PathBuf>) -> Self {
        Self { folder }
    }

    fn find(&self, name: &str) -> Option<FoundFile> {
        let Some(folder) = &self.folder else {
            let file = Built::get(name)?;
            return Some(FoundFile { tag: tag(&file.metadata.sha256_hash()), bytes: file.data });
        };
        let plain = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
        let path = folder.join(name);
        let small = plain && std::fs::metadata(&path).is_ok_and(|meta| meta.is_file() && meta.len() <= FILE_BYTES_MAX);
        let bytes = small.then(|| std::fs::read(path).ok()).flatten()?;
        Some(FoundFile { tag: tag(&Sha256::digest(&bytes).into()), bytes: Cow::Owned(bytes) })
    }

    /// The file in the best encoding that the client accepts, or 304 if it has the file already.
    fn answer(&self, request: &Request, name: &str) -> Option<Response> {
        let cache_control = if name.starts_with(HASHED) { IMMUTABLE } else { REVALIDATE };
        let accepted = request.header("accept-encoding").unwrap_or_default();
        let packed = ENCODINGS
            .iter()
            .filter(|(encoding, _)| accepts(accepted, encoding))
            .find_map(|(encoding, suffix)| self.find(&format!("{name}{suffix}")).map(|found| (found, Some(*encoding))));
        let plain = || self.find(name).or_else(|| inflate(&self.find(&format!("{name}.gz"))?.bytes));
        let (found, encoding) = packed.or_else(|| plain().map(|found| (found, None)))?;
        let known = request.header("if-none-match").is_some_and(|tags| lists(tags, &found.tag));
        let response = if known { Response::empty(304) } else { Response::bytes(200, content_type(name), found.bytes) };
        let response = response
            .with_header("ETag", found.tag)
            .with_header("Vary", "Accept-Encoding")
            .with_header("Cache-Control", cache_control);
        Some(match encoding {
            Some(encoding) if !known => response.with_header("Content-Encoding", encoding),
            Some(_) | None => response,
        })
    }
}

/// For the rare client that accepts no encoding.
fn inflate(packed: &[u8]) -> Option<FoundFile> {
    let mut bytes = Vec::new();
    MultiGzDecoder::new(packed).read_to_end(&mut bytes).ok()?;
    Some(FoundFile { tag: tag(&Sha256::digest(&bytes).into()), bytes: Cow::Owned(bytes) })
}

fn tag(digest: &[u8; 32]) -> String {
    format!("\"{}\"", hex(&digest[..16]))
}

/// Whether an `Accept-Encoding` or `Accept` lists `wanted` and doesn't reject it (`q=0`).
fn accepts(accepted: &str, wanted: &str) -> bool {
    accepted.split(',').any(|item| {
        let mut parts = item.split(';').map(str::trim);
        let named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(wanted));
        let refused =
            parts.any(|part| part.strip_prefix("q=").and_then(|q| q.parse::<f32>().ok()).is_some_and(|q| q <= 0.0));
        named && !refused
    })
}

/// Whether an `If-None-Match` lists the tag, by weak comparison (RFC 9110).
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

pub(super) fn endpoints() -> Vec<Endpoint<Ui>> {
    let open = |endpoint: Endpoint<Ui>, content_type| {
        let endpoint = endpoint.with_credential(Credential::Nothing).reserved();
        endpoint
            .bytes_response(200, content_type, "the file, compressed if the client accepts that")
            .header("ETag")
            .header("Vary")
            .empty_response(304, "not modified")
            .header("ETag")
            .errors(&[ErrorCode::NotFound])
    };
    let pages =
        PAGES.iter().map(|(pattern, id)| open(Endpoint::get(pattern, id, "The page of the browser UI", page), HTML));
    let files = [
        open(Endpoint::get("/assets/{name...}", "ui.asset", "A script, style or picture of the UI", file), "*/*"),
        open(Endpoint::get("/theme.js", "ui.theme", "Sets the theme before the page is drawn", file), JAVASCRIPT),
        open(Endpoint::get("/favicon.svg", "ui.icon", "The icon of the UI", file), SVG),
    ];
    pages.chain(files).collect()
}

/// The endpoint of all paths that no other row has.
pub(super) fn fallback() -> Endpoint<Ui> {
    Endpoint::get("/{other...}", "ui.other", "The page of the browser UI", other)
        .with_credential(Credential::Nothing)
        .reserved()
}

#[expect(clippy::unnecessary_wraps, reason = "the signature of a handler")]
fn page(ui: &Ui, request: &mut Request) -> Result<Response, ApiError> {
    Ok(ui.answer(request, PAGE).unwrap_or_else(|| Response::bytes(200, HTML, NOT_BUILT.as_bytes())))
}

/// The page for a browser that navigates to an unknown path; requests for data get the usual error.
fn other(ui: &Ui, request: &mut Request) -> Result<Response, ApiError> {
    let is_navigation = request.header("accept").is_some_and(|accepted| accepts(accepted, "text/html"));
    if !is_navigation || request.head().is_under(API) {
        return Err(ApiError::of(ErrorCode::NotFound));
    }
    let page = ui.find(PAGE).map_or(Cow::Borrowed(NOT_BUILT.as_bytes()), |found| found.bytes);
    Ok(Response::bytes(404, HTML, page).with_header("Vary", "Accept"))
}

/// A file at its own path.
fn file(ui: &Ui, request: &mut Request) -> Result<Response, ApiError> {
    let name = request.head().segments().join("/");
    ui.answer(request, &name).ok_or_else(|| ApiError::of(ErrorCode::NotFound))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoding_with_zero_weight_is_rejected() {
        assert!(accepts("gzip, deflate, br", "br"));
        assert!(accepts("GZIP;q=0.5", "gzip"));
        assert!(!accepts("br;q=0, gzip", "br"));
        assert!(!accepts("identity", "br"));
        assert!(!accepts("", "gzip"));
    }

    #[test]
    fn tags_match_in_lists_and_weak_form() {
        assert!(lists("\"a\", W/\"b\"", "\"b\""));
        assert!(lists("*", "\"b\""));
        assert!(!lists("\"bb\"", "\"b\""));
    }

    #[test]
    fn file_names_cannot_escape_the_folder() {
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
