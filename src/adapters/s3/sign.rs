//! Signs requests (AWS Signature Version 4), in the query or in headers.
//!
//! Invariant: the store rejects a request that is signed in the query after its expiry, and one that is signed in headers
//! [`DATE_WINDOW`] after its date. The method, the whole URL, `host` and the `x-amz-…` headers are signed; preconditions
//! and ranges are not, nor is a body from a file.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use s3::signing;
use time::OffsetDateTime;
use ureq::http::{HeaderMap, HeaderValue};
use url::Url;

use crate::adapters::aws::{
    CanonicalRequest, SignError, SigningKeys, SigningScope, custom_region, host_of, sign_headers, signature,
};
use crate::domain::digest::sha256_hex;

use super::expiry::Validity;
use super::request::{Header, Payload};

const SERVICE: &str = "s3";
const UNSIGNED: &str = "UNSIGNED-PAYLOAD";
const HASH_HEADER: &str = "x-amz-content-sha256";

/// Percent-encodes a key for a path, except `/` and unreserved characters.
pub(super) fn encode_path(key: &str) -> String {
    signing::uri_encode(key, false)
}

/// A request before it is signed.
pub(super) struct Unsigned<'a> {
    pub(super) region: &'a str,
    pub(super) method: &'a str,
    /// The URL without a query, percent-encoded.
    pub(super) base: &'a str,
    pub(super) query: &'a [(&'static str, String)],
    pub(super) headers: &'a [Header],
}

impl Unsigned<'_> {
    /// The URL with a signature that is valid as long as `validity`.
    pub(super) fn in_query(&self, keys: &SigningKeys, validity: Validity) -> Result<String, SignError> {
        let at = OffsetDateTime::from_unix_timestamp(validity.from.timestamp()).map_err(SignError::new)?;
        let signed: HeaderMap = signed_headers(self.headers)?;
        let (id, token) = (keys.id.reveal(), keys.session_token.as_ref().map(|token| token.reveal().to_owned()));
        let own = signing::authorization_query_params_no_sig(
            id,
            &at,
            &custom_region(self.region),
            validity.seconds,
            Some(&signed),
            token.as_ref(),
        )
        .map_err(SignError::new)?;
        let url = Url::parse(&format!("{}{own}{}", self.base, self.query("&"))).map_err(SignError::new)?;
        let request = canonical_request(self.method, &url, &signed)?;
        let scope = SigningScope { at: validity.from, region: self.region, service: SERVICE };
        let signature = signature(keys, &scope, &request)?;
        Ok(format!("{url}&X-Amz-Signature={signature}"))
    }

    /// The URL, and the headers to add to those of the request. The store accepts them within a few minutes of `at`.
    pub(super) fn in_headers(
        &self,
        keys: &SigningKeys,
        at: DateTime<Utc>,
        payload: Payload<'_>,
    ) -> Result<(String, Vec<Header>), SignError> {
        let url = Url::parse(&format!("{}{}", self.base, self.query("?"))).map_err(SignError::new)?;
        let hash = match payload {
            Payload::None => sha256_hex(b""),
            Payload::Bytes(bytes) => sha256_hex(bytes),
            Payload::Section { .. } => UNSIGNED.to_owned(),
        };
        let is_signed = |(name, _): &&Header| name.starts_with("x-amz-") || *name == "content-type";
        let mut headers: Vec<Header> = self.headers.iter().filter(is_signed).cloned().collect();
        headers.push((HASH_HEADER, hash.clone()));
        let path = signing::canonical_uri_string(&url);
        let request = CanonicalRequest { method: self.method, url: &url, path: &path, headers, payload_hash: &hash };
        let scope = SigningScope { at, region: self.region, service: SERVICE };
        let mut own = sign_headers(keys, &scope, &request)?;
        own.push((HASH_HEADER, hash));
        Ok((url.into(), own))
    }

    fn query(&self, first: &str) -> String {
        let separators = std::iter::once(first).chain(std::iter::repeat("&"));
        let encode = |text: &str| signing::uri_encode(text, true);
        let pairs = self.query.iter().zip(separators);
        pairs.map(|((name, value), separator)| format!("{separator}{}={}", encode(name), encode(value))).collect()
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

    fn keys() -> SigningKeys {
        SigningKeys {
            id: Secret::new("AKIAIOSFODNN7EXAMPLE"),
            secret: Secret::new("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
            session_token: None,
            end: None,
        }
    }

    fn unsigned<'a>(path: &str, query: &'a [(&'static str, String)]) -> Unsigned<'a> {
        let base = format!("https://examplebucket.s3.amazonaws.com{path}").leak();
        Unsigned { region: "us-east-1", method: "GET", base, query, headers: &[] }
    }

    /// The examples of AWS's documentation on signatures in headers.
    #[test]
    fn headers_are_signed_as_specified() {
        let at = DateTime::from_timestamp(1_369_353_600, 0).unwrap();
        let sign = |query: &[(&'static str, String)], keys: &SigningKeys| {
            unsigned("/", query).in_headers(keys, at, Payload::None).unwrap()
        };
        let listing = [("max-keys", "2".to_owned()), ("prefix", "J".to_owned())];
        let (url, headers) = sign(&listing, &keys());
        assert_eq!(url, "https://examplebucket.s3.amazonaws.com/?max-keys=2&prefix=J");
        let authorization = "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, \
                             SignedHeaders=host;x-amz-content-sha256;x-amz-date, \
                             Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7";
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let expected =
            [("x-amz-date", "20130524T000000Z"), ("authorization", authorization), ("x-amz-content-sha256", empty)];
        assert_eq!(headers, expected.map(|(name, value)| (name, value.to_owned())));
        let (_, headers) = sign(&[("lifecycle", String::new())], &keys());
        let expected = "Signature=fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543";
        assert!(headers[1].1.ends_with(expected), "{}", headers[1].1);
        let temporary = SigningKeys { session_token: Some(Secret::new("a/b+c=")), ..keys() };
        let (_, headers) = sign(&listing, &temporary);
        assert_eq!(headers[1], ("x-amz-security-token", "a/b+c=".to_owned()));
        assert!(headers[2].1.contains(";x-amz-security-token, "), "{}", headers[2].1);
    }

    /// The example of AWS's documentation on presigned URLs.
    #[test]
    fn signature_matches_the_specification() {
        let keys = keys();
        let from = chrono::DateTime::from_timestamp(1_369_353_600, 999_000_000).unwrap();
        let validity = Validity { from, seconds: 86_400 };
        let sign = |keys: &SigningKeys| unsigned("/test.txt", &[]).in_query(keys, validity).unwrap();
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
