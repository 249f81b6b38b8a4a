//! Settings, certificate authorities and requests that the HTTP clients of this process share.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ureq::config::ConfigBuilder;
use ureq::http::Request;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::typestate::AgentScope;
use ureq::{Agent, AsSendBody};

use crate::domain::text::clipped;

/// Pauses before the next attempts of a request that may be repeated.
const RETRY_PAUSES: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(1)];

/// Why the file of certificate authorities can't be used.
#[derive(Debug, thiserror::Error)]
pub enum CaFileError {
    #[error("the file of certificate authorities `{}`: {source}", .path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("the file of certificate authorities `{}`: expected PEM certificates, found {found}", .path.display())]
    Certificates { path: PathBuf, found: String },
}

/// A client that follows no redirects, uses no proxy, and reports statuses of 400 and above as responses. Timeouts and
/// pooled connections are the caller's.
pub fn config(tls: TlsConfig) -> ConfigBuilder<AgentScope> {
    Agent::config_builder()
        .http_status_as_error(false)
        .proxy(None)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .user_agent(concat!("lakemill/", env!("CARGO_PKG_VERSION")))
        .accept_encoding("identity")
        .tls_config(tls)
}

/// A response whose body is text.
pub struct TextResponse {
    pub status: u16,
    pub text: String,
}

impl TextResponse {
    /// Whether the server, or a proxy in front of it, can't do the request now.
    pub const fn is_unavailable(&self) -> bool {
        self.status >= 500 || self.status == 429
    }

    /// # Errors
    /// [`TextResponse::failure`] if the status isn't 200.
    pub fn success(self) -> Result<String, String> {
        match self.status {
            200 => Ok(self.text),
            _ => Err(self.failure()),
        }
    }

    /// Status and beginning of the body.
    pub fn failure(&self) -> String {
        format!("status {}: {}", self.status, clipped(self.text.trim()))
    }
}

/// # Errors
/// If the URL or a header isn't valid.
pub fn request<'b>(
    method: &str,
    url: &str,
    headers: impl IntoIterator<Item = (&'static str, impl AsRef<str>)>,
    body: &'b [u8],
) -> Result<Request<&'b [u8]>, String> {
    let mut request = Request::builder().method(method).uri(url);
    for (name, value) in headers {
        request = request.header(name, value.as_ref());
    }
    request.body(body).map_err(|error| error.to_string())
}

/// Sends a request once and reads the response, at most `bytes_max` of it.
///
/// # Errors
/// If there is no response in time, or it isn't text of that length.
pub fn send(agent: &Agent, request: Request<impl AsSendBody>, bytes_max: u64) -> Result<TextResponse, String> {
    let mut response = agent.run(request).map_err(|error| error.to_string())?;
    let status = response.status().as_u16();
    let text = response.body_mut().with_config().limit(bytes_max).read_to_string();
    Ok(TextResponse { status, text: text.map_err(|error| error.to_string())? })
}

/// Repeats a request, with pauses, while it fails or the server is unavailable. Returns the last outcome.
///
/// # Errors
/// The error of the last attempt.
pub fn with_retries<E>(send: impl Fn() -> Result<TextResponse, E>) -> Result<TextResponse, E> {
    for pause in RETRY_PAUSES {
        match send() {
            Ok(response) if !response.is_unavailable() => return Ok(response),
            _ => std::thread::sleep(pause),
        }
    }
    send()
}

/// The TLS configuration of a client of `url`: it trusts the public authorities and those of the file. Reads the file
/// even if the URL has no TLS, so that a wrong path is reported.
///
/// # Errors
/// The file can't be read, or contains anything but certificates.
pub fn tls(url: &str, ca_file: Option<&Path>) -> Result<TlsConfig, CaFileError> {
    let mut roots = Vec::new();
    if let Some(path) = ca_file {
        let pem = std::fs::read(path).map_err(|source| CaFileError::Read { path: path.to_owned(), source })?;
        let wrong = |found: String| CaFileError::Certificates { path: path.to_owned(), found };
        for item in parse_pem(&pem) {
            match item.map_err(|error| wrong(format!("an unreadable PEM item: {error}")))? {
                PemItem::Certificate(certificate) => roots.push(certificate),
                _ => return Err(wrong("something else".to_owned())),
            }
        }
        if roots.is_empty() {
            return Err(wrong("none".to_owned()));
        }
    }
    if url.starts_with("https://") {
        let public = webpki_root_certs::TLS_SERVER_ROOT_CERTS;
        roots.extend(public.iter().map(|root| Certificate::from_der(root).to_owned()));
    }
    Ok(TlsConfig::builder().root_certs(RootCerts::Specific(Arc::new(roots))).build())
}
