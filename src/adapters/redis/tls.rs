//! The URL of a server, its trusted certificate authorities, and this client's certificate.

use ::redis::{
    Client, ClientTlsConfig, ConnectionAddr, ConnectionInfo, ErrorKind, IntoConnectionInfo, RedisError, TlsCertificates,
};

use crate::domain::digest::base64;

use super::options::{ClientIdentity, OpenError, RedisOptions};

/// Certificates of a TLS connection: the trusted authorities, and the client's own.
#[derive(Clone, Default)]
pub(super) struct Trust {
    /// Roots to trust in addition to the public ones.
    ca_pem: Option<Vec<u8>>,
    client: Option<ClientIdentity>,
}

impl Trust {
    pub(super) fn of(options: &RedisOptions) -> Self {
        Self { ca_pem: options.ca_pem.clone(), client: options.client.clone() }
    }
}

/// Parses the URL.
pub(super) fn client(url: &str, trust: &Trust) -> Result<Client, OpenError> {
    let refused = |error: RedisError| OpenError::Url { reason: reason(&error) };
    let info = url.into_connection_info().map_err(refused)?;
    let tcp = info.tcp_settings().clone().set_nodelay(true);
    let info = info.set_tcp_settings(tcp);
    if !is_tls(&info)? {
        return Client::open(info).map_err(refused);
    }
    let Trust { ca_pem, client } = trust;
    if ca_pem.is_none() && client.is_none() {
        return Client::open(info).map_err(refused);
    }
    let mut roots = public_roots();
    roots.extend_from_slice(ca_pem.as_deref().unwrap_or_default());
    let client_tls = client
        .clone()
        .map(|ClientIdentity { chain_pem, key_pem }| ClientTlsConfig { client_cert: chain_pem, client_key: key_pem });
    let certificates = TlsCertificates { client_tls, root_cert: Some(roots) };
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
        let extra = |pem: &[u8]| Trust { ca_pem: Some(pem.to_vec()), client: None };
        assert!(client("rediss://cache.example:6380/0", &extra(b"")).is_ok());
        let broken = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(matches!(client("rediss://a/", &extra(broken)), Err(OpenError::Certificates { .. })));
    }

    #[test]
    fn client_certificate_that_cannot_be_read_is_rejected() {
        let identity = ClientIdentity { chain_pem: b"no PEM".to_vec(), key_pem: Vec::new() };
        let trust = Trust { ca_pem: None, client: Some(identity) };
        assert!(matches!(client("rediss://a/", &trust), Err(OpenError::Certificates { .. })));
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
            let Err(error) = client(url, &Trust::default()) else { panic!("{url} was taken") };
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{url}: {error:?}");
        }
        for url in ["redis://host", "redis://:p@host:1/3", "rediss://u:p@[::1]:6380/0"] {
            assert!(client(url, &Trust::default()).is_ok(), "{url}");
        }
    }
}
