//! Presigns requests (AWS Signature Version 4 in the query).
//!
//! Invariant: the store rejects a signed request after its expiry. The method, the whole URL, `host` and the `x-amz-…`
//! headers are signed; preconditions, ranges and the body are not.

use std::collections::BTreeMap;

use s3::region::Region;
use s3::signing;
use time::OffsetDateTime;
use ureq::http::{HeaderMap, HeaderValue};
use url::Url;

use crate::adapters::aws::{SignError, SigningKeys, host_of, signature};

use super::expiry::Validity;
use super::request::Header;

const UNSIGNED: &str = "UNSIGNED-PAYLOAD";

pub(super) struct Signer {
    region: Region,
}

/// Percent-encodes a key for a path, except `/` and unreserved characters.
pub(super) fn encode_path(key: &str) -> String {
    signing::uri_encode(key, false)
}

impl Signer {
    pub(super) fn new(region: &str) -> Self {
        Self { region: Region::Custom { region: region.to_owned(), endpoint: String::new() } }
    }

    /// The URL `base` (already percent-encoded, without a query) with `query` and the signature.
    pub(super) fn sign(
        &self,
        keys: &SigningKeys,
        method: &str,
        base: &str,
        query: &[(&str, String)],
        headers: &[Header],
        validity: Validity,
    ) -> Result<String, SignError> {
        let at = OffsetDateTime::from_unix_timestamp(validity.from.timestamp()).map_err(SignError::new)?;
        let signed: HeaderMap = signed_headers(headers)?;
        let (id, token) = (keys.id.reveal(), keys.session_token.as_ref().map(|token| token.reveal().to_owned()));
        let own = signing::authorization_query_params_no_sig(
            id,
            &at,
            &self.region,
            validity.seconds,
            Some(&signed),
            token.as_ref(),
        )
        .map_err(SignError::new)?;
        let mut text = format!("{base}{own}");
        for (name, value) in query {
            text.push_str(&format!("&{}={}", signing::uri_encode(name, true), signing::uri_encode(value, true)));
        }
        let url = Url::parse(&text).map_err(SignError::new)?;
        let request = canonical_request(method, &url, &signed)?;
        let signature = signature(keys, validity.from, &self.region.to_string(), "s3", &request)?;
        Ok(format!("{url}&X-Amz-Signature={signature}"))
    }
}

fn signed_headers(headers: &[Header]) -> Result<HeaderMap, SignError> {
    let mut signed = HeaderMap::new();
    for (name, value) in headers.iter().filter(|(name, _)| name.starts_with("x-amz-")) {
        signed.insert(*name, HeaderValue::from_str(value).map_err(SignError::new)?);
    }
    Ok(signed)
}

/// Like [`signing::canonical_request`], which sorts `x-amz-copy-source-if-match` before `x-amz-copy-source`.
fn canonical_request(method: &str, url: &Url, signed: &HeaderMap) -> Result<String, SignError> {
    let mut headers = BTreeMap::from([("host", host_of(url))]);
    for (name, value) in signed {
        headers.insert(name.as_str(), value.to_str().map_err(SignError::new)?.trim().to_owned());
    }
    let lines: String = headers.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
    let names = headers.into_keys().collect::<Vec<_>>().join(";");
    let (path, query) = (signing::canonical_uri_string(url), signing::canonical_query_string(url));
    Ok(format!("{method}\n{path}\n{query}\n{lines}\n{names}\n{UNSIGNED}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Secret;

    /// The example of AWS's documentation on presigned URLs.
    #[test]
    fn signature_matches_the_specification() {
        let keys = SigningKeys {
            id: Secret::new("AKIAIOSFODNN7EXAMPLE"),
            secret: Secret::new("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
            session_token: None,
            end: None,
        };
        let from = chrono::DateTime::from_timestamp(1_369_353_600, 999_000_000).unwrap();
        let validity = Validity { from, seconds: 86_400 };
        let sign = |keys: &SigningKeys| {
            let signer = Signer::new("us-east-1");
            signer.sign(keys, "GET", "https://examplebucket.s3.amazonaws.com/test.txt", &[], &[], validity).unwrap()
        };
        let url = sign(&keys);
        let expected = "X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404";
        assert!(url.ends_with(expected), "{url}");
        let temporary = sign(&SigningKeys { session_token: Some(Secret::new("a/b+c=")), ..keys });
        assert!(
            temporary.contains("&X-Amz-Security-Token=a%2Fb%2Bc%3D&") && !temporary.ends_with(expected),
            "{temporary}"
        );
    }

    #[test]
    fn headers_are_signed_sorted_by_name() {
        let headers =
            [("x-amz-copy-source", "/b/k".into()), ("x-amz-copy-source-if-match", "t".into()), ("range", "r".into())];
        let signed = signed_headers(&headers).unwrap();
        let request = canonical_request("PUT", &Url::parse("http://h:81/b/a%20b?z=1&a=%2B").unwrap(), &signed).unwrap();
        let expected = "PUT\n/b/a%20b\na=%2B&z=1\nhost:h:81\nx-amz-copy-source:/b/k\nx-amz-copy-source-if-match:t\n\n\
                        host;x-amz-copy-source;x-amz-copy-source-if-match\nUNSIGNED-PAYLOAD";
        assert_eq!(request, expected);
    }

    #[test]
    fn keys_are_encoded_except_slashes() {
        assert_eq!(encode_path("a b/é+%&=~.csv"), "a%20b/%C3%A9%2B%25%26%3D~.csv");
    }
}
