//! The endpoint that ECS and EKS Pod Identity offer to a container.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

use super::http::{HttpClient, SmallRequest, keys_of_json};
use super::keys::{CredentialsError, SigningKeys};
use crate::config::{ContainerEndpoint, ContainerToken, Secret};

/// The address of ECS's endpoint, which relative URIs mean.
const ECS: Ipv4Addr = Ipv4Addr::new(169, 254, 170, 2);
/// The addresses of the agent of EKS Pod Identity.
const EKS: Ipv4Addr = Ipv4Addr::new(169, 254, 170, 23);
const EKS_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23);

/// # Errors
/// If the endpoint isn't allowed, or has no keys.
pub(super) fn fetch(endpoint: &ContainerEndpoint, http: &HttpClient) -> Result<SigningKeys, CredentialsError> {
    let (variable, url) = match endpoint {
        ContainerEndpoint::Relative(path) => ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", format!("http://{ECS}{path}")),
        ContainerEndpoint::Full { url, .. } => ("AWS_CONTAINER_CREDENTIALS_FULL_URI", url.clone()),
    };
    let failed = |reason: String| CredentialsError::new(format!("the endpoint of {variable}"), reason);
    if !is_allowed(&url) {
        let reason = "expected `https://`, or `http://` with an address of this machine, of ECS or of EKS Pod Identity";
        return Err(failed(reason.to_owned()));
    }
    let token = match endpoint {
        ContainerEndpoint::Relative(_) => None,
        ContainerEndpoint::Full { token, .. } => token.as_ref().map(read_token).transpose().map_err(failed)?,
    };
    let headers = token.iter().map(|token| ("authorization", token.reveal())).collect();
    let request = SmallRequest { method: "GET", url: &url, headers, ..SmallRequest::default() };
    http.send(&request).and_then(|response| response.success()).and_then(|text| keys_of_json(&text)).map_err(failed)
}

/// The token, whose file is replaced from time to time.
fn read_token(token: &ContainerToken) -> Result<Secret, String> {
    match token {
        ContainerToken::Text(token) => Ok(token.clone()),
        ContainerToken::File(path) => match std::fs::read_to_string(path) {
            Ok(text) => Ok(Secret::new(text.trim_end())),
            Err(error) => Err(format!("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE, `{}`: {error}", path.display())),
        },
    }
}

/// Whether the token may be sent there: only by TLS, or to this machine. The rule of AWS's SDKs.
fn is_allowed(url: &str) -> bool {
    let Ok(url) = Url::parse(url) else { return false };
    let address = match url.host() {
        Some(Host::Domain(name)) if url.scheme() == "http" => return name.eq_ignore_ascii_case("localhost"),
        Some(Host::Ipv4(address)) => IpAddr::V4(address),
        Some(Host::Ipv6(address)) => IpAddr::V6(address),
        Some(Host::Domain(_)) => return url.scheme() == "https",
        None => return false,
    };
    let is_near = address.is_loopback() || [IpAddr::V4(ECS), IpAddr::V4(EKS), IpAddr::V6(EKS_V6)].contains(&address);
    url.scheme() == "https" || url.scheme() == "http" && is_near
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_is_sent_by_tls_or_to_this_machine_only() {
        for good in [
            "https://example.org/keys",
            "http://127.0.0.1:5000/keys",
            "http://localhost/keys",
            "http://[::1]/keys",
            "http://169.254.170.2/v2",
            "http://169.254.170.23/v1/credentials",
            "http://[fd00:ec2::23]/v1/credentials",
        ] {
            assert!(is_allowed(good), "{good}");
        }
        let bad = ["http://example.org/", "http://10.0.0.1/", "http://169.254.169.254/", "ftp://127.0.0.1/", "keys"];
        assert_eq!(bad.map(is_allowed), [false; 5]);
    }
}
