//! The URL of a server, and its trusted certificate authorities.

use ::redis::{Client, ConnectionAddr, ConnectionInfo, ErrorKind, IntoConnectionInfo, RedisError, TlsCertificates};

use crate::domain::digest::base64;

use super::options::OpenError;

/// Parses the URL. `ca_pem`: roots to trust in addition to the public ones.
pub(super) fn client(url: &str, ca_pem: Option<&[u8]>) -> Result<Client, OpenError> {
    let refused = |error: RedisError| OpenError::Url { reason: reason(&error) };
    let info = url.into_connection_info().map_err(refused)?;
    let tcp = info.tcp_settings().clone().set_nodelay(true);
    let info = info.set_tcp_settings(tcp);
    if !is_tls(&info)? {
        return Client::open(info).map_err(refused);
    }
    let Some(extra) = ca_pem else { return Client::open(info).map_err(refused) };
    let mut roots = public_roots();
    roots.extend_from_slice(extra);
    let certificates = TlsCertificates { client_tls: None, root_cert: Some(roots) };
    Client::build_with_tls(info, certificates).map_err(|error| OpenError::Certificates { reason: error.to_string() })
}

fn is_tls(info: &ConnectionInfo) -> Result<bool, OpenError> {
    match info.addr() {
        ConnectionAddr::TcpTls { insecure: true, .. } => Err(OpenError::Url {
            reason: "`#insecure` is not supported: name the CA that signed the certificate".into(),
        }),
        ConnectionAddr::TcpTls { .. } => Ok(true),
        _ => Ok(false),
    }
}

/// The crate's own text, which never quotes the URL.
fn reason(error: &RedisError) -> String {
    match (error.kind(), error.detail()) {
        (ErrorKind::InvalidClientConfig, None) => {
            let text = error.to_string();
            text.split(" - ").next().unwrap_or_default().to_owned()
        }
        (_, _) => "it can't be read".into(),
    }
}

/// The public roots as PEM, since the TLS library takes all roots in one text.
fn public_roots() -> Vec<u8> {
    let mut pem = Vec::new();
    for certificate in webpki_root_certs::TLS_SERVER_ROOT_CERTS {
        pem.extend_from_slice(b"-----BEGIN CERTIFICATE-----\n");
        for line in base64(certificate).as_bytes().chunks(64) {
            pem.extend_from_slice(line);
            pem.push(b'\n');
        }
        pem.extend_from_slice(b"-----END CERTIFICATE-----\n");
    }
    pem.push(b'\n');
    pem
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extra_roots_are_trusted_in_addition_to_public_ones() {
        assert!(client("rediss://cache.example:6380/0", Some(&[])).is_ok());
        let broken = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(matches!(client("rediss://a/", Some(broken)), Err(OpenError::Certificates { .. })));
    }

    #[test]
    fn invalid_url_is_rejected_without_showing_its_password() {
        for url in [
            "redis://user:hunter2@",
            "redis://:hunter2@host/nodb",
            "http://:hunter2@host/",
            "rediss://:hunter2@host/#insecure",
            "redis://:hunter2@host:99999/",
            "redis://:hunter2@host/?protocol=hunter2",
            "hunter2",
        ] {
            let Err(error) = client(url, None) else { panic!("{url} was taken") };
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{url}: {error:?}");
        }
        for url in ["redis://host", "redis://:p@host:1/3", "rediss://u:p@[::1]:6380/0"] {
            assert!(client(url, None).is_ok(), "{url}");
        }
    }
}
