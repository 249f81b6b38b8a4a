//! What all HTTP clients of this process have in common: their settings, and the certificate authorities they trust.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ureq::Agent;
use ureq::config::ConfigBuilder;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::typestate::AgentScope;

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
            match item.map_err(|error| wrong(format!("something unreadable: {error}")))? {
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
