//! Secrets in request heads, compared in constant time, and access to metrics.

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::config::Secret;
use crate::domain::digest::decode_base64;

use super::error::{ApiError, ErrorCode};
use super::head::RequestHead;
use super::router::Caller;

/// Whether the head has exactly one `Authorization: Bearer <secret>`.
pub fn has_bearer(head: &RequestHead, secret: &Secret) -> bool {
    head.headers().only("authorization").and_then(bearer).is_some_and(|token| equal(token, secret))
}

/// The secret of a webhook: `X-Svc-Webhook-Secret: <secret>`, or `Authorization` with the secret, bare, after `Bearer`, or
/// as the password of any user after `Basic`.
pub fn has_webhook_secret(head: &RequestHead, secret: &Secret) -> bool {
    let headers = head.headers();
    let named = headers.only("x-svc-webhook-secret").is_some_and(|value| equal(value, secret));
    let authorized = headers.only("authorization").is_some_and(|value| {
        let bare = equal(value, secret);
        let token = bearer(value).is_some_and(|token| equal(token, secret));
        let password = basic_password(value).is_some_and(|password| equal(&password, secret));
        bare || token || password
    });
    named || authorized
}

/// Access to `/metrics`: with the token; without a configured token, only from this machine and only without a known proxy,
/// since requests forwarded by a proxy on this machine come from this machine as well.
#[derive(Debug, Clone)]
pub enum MetricsAccess {
    Token(Secret),
    LocalOnly,
    Denied,
}

impl MetricsAccess {
    /// `behind_proxy`: whether a setting implies that requests come through a proxy.
    pub fn new(token: Option<Secret>, behind_proxy: bool) -> Self {
        match token {
            Some(token) => Self::Token(token),
            None if behind_proxy => Self::Denied,
            None => Self::LocalOnly,
        }
    }

    /// # Errors
    /// `unauthorized`, with what is required.
    pub fn authorize(&self, head: &RequestHead) -> Result<Caller, ApiError> {
        let message = match self {
            Self::Token(token) if has_bearer(head, token) => return Ok(Caller::Secret),
            Self::LocalOnly if head.is_local() => return Ok(Caller::Ambient),
            Self::Token(_) => "metrics need the bearer token SVC_METRICS_TOKEN",
            Self::LocalOnly => {
                "without SVC_METRICS_TOKEN only this machine can read metrics, addressed as \
             `localhost`"
            }
            Self::Denied => "behind a proxy (SVC_PUBLIC_URL, SVC_TRUSTED_PROXIES) metrics require SVC_METRICS_TOKEN",
        };
        Err(ApiError::new(ErrorCode::Unauthorized, message))
    }
}

/// The token after `Bearer`.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    after_scheme(value, b"bearer ")
}

/// The password after `Basic`.
fn basic_password(value: &[u8]) -> Option<Vec<u8>> {
    let both = decode_base64(std::str::from_utf8(after_scheme(value, b"basic ")?).ok()?)?;
    let colon = both.iter().position(|byte| *byte == b':')?;
    Some(both[colon + 1..].to_vec())
}

/// The text after a scheme and a blank. `scheme` is in lower case; the comparison is case-insensitive.
fn after_scheme<'a>(value: &'a [u8], scheme: &[u8]) -> Option<&'a [u8]> {
    let (found, rest) = value.split_at_checked(scheme.len())?;
    found.eq_ignore_ascii_case(scheme).then(|| rest.trim_ascii())
}

/// Compares digests, so that the time reveals neither content nor length. An empty secret never matches.
fn equal(offered: &[u8], secret: &Secret) -> bool {
    let (ours, theirs) = (Sha256::digest(secret.reveal().as_bytes()), Sha256::digest(offered));
    !secret.reveal().is_empty() && bool::from(ours.as_slice().ct_eq(theirs.as_slice()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(fields: &[(&str, &str)]) -> RequestHead {
        RequestHead::for_test("GET", "/", fields)
    }

    #[test]
    fn bearer_token_must_match_exactly_once() {
        let secret = Secret::new("s3cret");
        let check = |fields: &[(&str, &str)], expected: bool| {
            assert_eq!(has_bearer(&head(fields), &secret), expected, "{fields:?}");
        };
        check(&[("Authorization", "Bearer s3cret")], true);
        check(&[("authorization", "bearer s3cret")], true);
        check(&[("Authorization", "s3cret")], false);
        check(&[("Authorization", "Basic s3cret")], false);
        check(&[("Authorization", "Bearer s3cre")], false);
        check(&[("Authorization", "Bearer s3cret2")], false);
        check(&[("Authorization", "Bearer ")], false);
        check(&[("Authorization", "")], false);
        check(&[], false);
        check(&[("Authorization", "Bearer s3cret"), ("Authorization", "Bearer s3cret")], false);
        assert!(!has_bearer(&head(&[("Authorization", "Bearer ")]), &Secret::new("")));
    }

    #[test]
    fn metrics_need_the_token_unless_the_request_is_local_and_no_proxy_is_known() {
        let caller = |access: &MetricsAccess, fields: &[(&str, &str)], host: &str| {
            access.authorize(&RequestHead::for_host("GET", "/metrics", host, fields)).ok()
        };
        let local = MetricsAccess::new(None, false);
        for host in ["127.0.0.1:3000", "localhost", "[::1]:8080", "127.9.9.9"] {
            assert_eq!(caller(&local, &[], host), Some(Caller::Ambient), "{host}");
        }
        for host in ["lake.example.org", "10.1.2.3", "x"] {
            assert_eq!(caller(&local, &[], host), None, "{host}");
        }
        for name in ["Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP", "Via"] {
            assert_eq!(caller(&local, &[(name, "x")], "127.0.0.1"), None, "{name}");
        }
        let proxied = MetricsAccess::new(None, true);
        assert_eq!(caller(&proxied, &[], "127.0.0.1"), None);
        let token = MetricsAccess::new(Some(Secret::new("s3cret")), true);
        assert_eq!(caller(&token, &[("Authorization", "Bearer s3cret")], "any.example"), Some(Caller::Secret));
        assert_eq!(caller(&token, &[], "127.0.0.1"), None);
    }

    #[test]
    fn webhook_secret_is_accepted_in_four_forms() {
        let secret = Secret::new("s3cret");
        let check = |fields: &[(&str, &str)], expected: bool| {
            assert_eq!(has_webhook_secret(&head(fields), &secret), expected, "{fields:?}");
        };
        check(&[("X-Svc-Webhook-Secret", "s3cret")], true);
        check(&[("Authorization", "s3cret")], true);
        check(&[("Authorization", "Bearer s3cret")], true);
        check(&[("X-Svc-Webhook-Secret", "s3cret"), ("Authorization", "Bearer s3cret")], true);
        check(&[("X-Svc-Webhook-Secret", "wrong"), ("Authorization", "Bearer s3cret")], true);
        check(&[("X-Svc-Webhook-Secret", "s3cret"), ("X-Svc-Webhook-Secret", "s3cret")], false);
        check(&[("X-Svc-Webhook-Secret", "Bearer s3cret")], false);
        let basic = |both: &str| format!("Basic {}", crate::domain::digest::base64(both.as_bytes()));
        for (both, expected) in
            [("any:s3cret", true), (":s3cret", true), ("s3cret", false), ("s3cret:", false), ("a:b:s3cret", false)]
        {
            check(&[("Authorization", &basic(both))], expected);
        }
        check(&[("Authorization", &basic("u:s3cret").replace("Basic", "basic"))], true);
        check(&[("Authorization", "Basic s3cret")], false);
        check(&[("X-Svc-Webhook-Secret", &basic("u:s3cret"))], false);
        assert!(has_webhook_secret(&head(&[("Authorization", &basic("u:a:b"))]), &Secret::new("a:b")));
        assert!(!has_webhook_secret(&head(&[("Authorization", &basic("u:"))]), &Secret::new("")));
        check(&[], false);
        assert!(!has_webhook_secret(&head(&[("Authorization", "")]), &Secret::new("")));
        assert!(has_webhook_secret(&head(&[("Authorization", "Bearer x")]), &Secret::new("Bearer x")));
    }
}
