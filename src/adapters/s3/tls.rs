//! Trusted certificate authorities: the public ones, and those of a file.

use std::path::Path;
use std::sync::Arc;

use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

use super::options::S3OpenError;

/// The TLS configuration of a client of `url`. Reads the CA file even if the URL has no TLS, so that a wrong path is
/// reported.
///
/// # Errors
/// The file can't be read, or contains anything but certificates.
pub fn config(url: &str, ca_file: Option<&Path>) -> Result<TlsConfig, S3OpenError> {
    let mut roots = Vec::new();
    if let Some(path) = ca_file {
        let pem = std::fs::read(path).map_err(|source| S3OpenError::CaFile { path: path.to_owned(), source })?;
        let wrong = |found: String| S3OpenError::Certificates { path: path.to_owned(), found };
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
