//! AWS Signature Version 4 in the headers of a request. `adapters/s3/sign` has what is S3's own.

use chrono::{DateTime, Utc};
use s3::region::Region;
use s3::signing;
use time::OffsetDateTime;
use url::Url;

use super::keys::SigningKeys;
use crate::domain::digest::{hmac_sha256_hex, sha256_hex};

/// Why a request can't be signed: a bug, or an invalid setting.
#[derive(Debug, thiserror::Error)]
#[error("the request can't be signed: {reason}")]
pub struct SignError {
    reason: String,
}

impl SignError {
    pub(in crate::adapters) fn new(error: impl std::fmt::Display) -> Self {
        Self { reason: error.to_string() }
    }
}

/// A request before it is signed.
#[derive(Debug, Clone, Copy)]
pub struct UnsignedRequest<'a> {
    pub method: &'a str,
    /// As sent, percent-encoded.
    pub url: &'a Url,
    /// Headers to sign besides `host`, with names in lower case.
    pub headers: &'a [(&'static str, &'a str)],
    pub body: &'a [u8],
}

/// Signs requests to one service of a region.
#[derive(Debug, Clone)]
pub struct RequestSigner {
    region: String,
    /// For example `sqs`.
    service: &'static str,
}

impl RequestSigner {
    pub fn new(region: &str, service: &'static str) -> Self {
        Self { region: region.to_owned(), service }
    }

    /// The headers to send besides those of the request. `at`: the service's time, which the signature is valid around.
    ///
    /// # Errors
    /// If the time can't be written.
    pub fn headers(
        &self,
        keys: &SigningKeys,
        request: &UnsignedRequest<'_>,
        at: DateTime<Utc>,
    ) -> Result<Vec<(&'static str, String)>, SignError> {
        let UnsignedRequest { method, url, headers, body } = *request;
        let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        // Encoded once more than in the URL, by all services but S3.
        let path = signing::uri_encode(url.path(), false);
        let scope = SigningScope { at, region: &self.region, service: self.service };
        let hash = sha256_hex(body);
        sign_headers(keys, &scope, &CanonicalRequest { method, url, path: &path, headers, payload_hash: &hash })
    }
}

/// The scope of a signature.
pub(in crate::adapters) struct SigningScope<'a> {
    pub(in crate::adapters) at: DateTime<Utc>,
    pub(in crate::adapters) region: &'a str,
    pub(in crate::adapters) service: &'a str,
}

/// The parts of a request that a signature in headers covers, besides the headers that it adds.
pub(in crate::adapters) struct CanonicalRequest<'a> {
    pub(in crate::adapters) method: &'a str,
    pub(in crate::adapters) url: &'a Url,
    /// Encoded as the service expects.
    pub(in crate::adapters) path: &'a str,
    /// Besides `host`.
    pub(in crate::adapters) headers: Vec<(&'static str, String)>,
    pub(in crate::adapters) payload_hash: &'a str,
}

/// The headers that sign a request: date, token and signature.
pub(in crate::adapters) fn sign_headers(
    keys: &SigningKeys,
    scope: &SigningScope<'_>,
    request: &CanonicalRequest<'_>,
) -> Result<Vec<(&'static str, String)>, SignError> {
    let CanonicalRequest { method, url, path, headers, payload_hash } = request;
    let mut own = vec![("x-amz-date", scope.at.format("%Y%m%dT%H%M%SZ").to_string())];
    own.extend(keys.session_token.iter().map(|token| ("x-amz-security-token", token.reveal().to_owned())));
    let mut signed = vec![("host", host_of(url))];
    signed.extend(headers.iter().map(|(name, value)| (*name, value.trim().to_owned())));
    signed.extend(own.iter().cloned());
    // By name only: no value counts.
    signed.sort_unstable_by_key(|(name, _)| *name);
    let lines: String = signed.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
    let names = signed.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");
    let query = signing::canonical_query_string(url);
    let canonical = format!("{method}\n{path}\n{query}\n{lines}\n{names}\n{payload_hash}");
    let signature = signature(keys, scope, &canonical)?;
    let (id, scope) = (keys.id.reveal(), scope.text());
    let value = format!("AWS4-HMAC-SHA256 Credential={id}/{scope}, SignedHeaders={names}, Signature={signature}");
    own.push(("authorization", value));
    Ok(own)
}

/// The signature of a canonical request, in hex.
pub(in crate::adapters) fn signature(
    keys: &SigningKeys,
    scope: &SigningScope<'_>,
    canonical_request: &str,
) -> Result<String, SignError> {
    let SigningScope { at, region, service } = *scope;
    let hash = sha256_hex(canonical_request.as_bytes());
    let text = format!("AWS4-HMAC-SHA256\n{}\n{}\n{hash}", at.format("%Y%m%dT%H%M%SZ"), scope.text());
    let day = OffsetDateTime::from_unix_timestamp(at.timestamp()).map_err(SignError::new)?;
    let region = custom_region(region);
    let key = signing::signing_key(&day, keys.secret.reveal(), &region, service).map_err(SignError::new)?;
    Ok(hmac_sha256_hex(&key, &[text.as_bytes()]))
}

impl SigningScope<'_> {
    fn text(&self) -> String {
        let Self { at, region, service } = self;
        format!("{}/{region}/{service}/aws4_request", at.format("%Y%m%d"))
    }
}

/// A region of any name.
pub(in crate::adapters) fn custom_region(name: &str) -> Region {
    Region::Custom { region: name.to_owned(), endpoint: String::new() }
}

/// The `Host` header of the transport: with the port unless it is the scheme's default.
pub(in crate::adapters) fn host_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Secret;

    fn signed(region: &str, service: &'static str, token: Option<&str>, request: &UnsignedRequest<'_>) -> String {
        let keys = SigningKeys {
            id: Secret::new("AKIDEXAMPLE"),
            secret: Secret::new("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
            session_token: token.map(Secret::new),
            end: None,
        };
        let at = DateTime::parse_from_rfc3339("2015-08-30T12:36:00Z").unwrap().to_utc();
        let headers = RequestSigner::new(region, service).headers(&keys, request, at).unwrap();
        assert_eq!(headers[0], ("x-amz-date", "20150830T123600Z".to_owned()));
        assert_eq!(
            headers.iter().find(|(name, _)| *name == "x-amz-security-token").map(|(_, value)| value.as_str()),
            token
        );
        headers.into_iter().find(|(name, _)| *name == "authorization").unwrap().1
    }

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    /// `get-vanilla` of AWS's test suite.
    #[test]
    fn signature_matches_the_specification() {
        let url = url("https://example.amazonaws.com/");
        let request = UnsignedRequest { method: "GET", url: &url, headers: &[], body: b"" };
        assert_eq!(
            signed("us-east-1", "service", None, &request),
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, \
             SignedHeaders=host;x-amz-date, \
             Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"
        );
    }

    /// Computed with botocore.
    #[test]
    fn headers_body_token_and_encoded_paths_are_signed_as_by_botocore() {
        let queue = url("https://sqs.eu-central-1.amazonaws.com/");
        let headers = [("content-type", "application/x-amz-json-1.0"), ("x-amz-target", "AmazonSQS.ReceiveMessage")];
        let body = br#"{"QueueUrl":"x"}"#;
        let request = UnsignedRequest { method: "POST", url: &queue, headers: &headers, body };
        let value = signed("eu-central-1", "sqs", Some("a/b+c="), &request);
        let expected = "SignedHeaders=content-type;host;x-amz-date;x-amz-security-token;x-amz-target, \
                        Signature=20c72ef08fa9118b4c44204047280c0325b0383761f3349a28f9ad42d726e41d";
        assert!(value.ends_with(expected), "{value}");
        let catalog = url("https://glue.eu-central-1.amazonaws.com/iceberg/v1/a%20b/x%1Fy?b=2&a=%2B1");
        let request = UnsignedRequest { method: "GET", url: &catalog, headers: &[], body: b"" };
        let value = signed("eu-central-1", "glue", None, &request);
        let expected = "Signature=47e39d1e666d69df706e787c494e7606a820f32109e124e51ec4555b3ce195a4";
        assert!(value.ends_with(expected), "{value}");
    }
}
