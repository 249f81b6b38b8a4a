//! Secrets in request heads, compared in constant time.

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::config::Secret;

use super::head::Head;

/// `Authorization: Bearer <secret>`, once.
pub fn bears(head: &Head, secret: &Secret) -> bool {
    head.headers().only("authorization").and_then(bearer).is_some_and(|token| equal(token, secret))
}

/// The secret of a webhook: `X-Svc-Webhook-Secret: <secret>`, or `Authorization` with the secret bare or after
/// `Bearer`; one of them is enough.
pub fn bears_webhook_secret(head: &Head, secret: &Secret) -> bool {
    let headers = head.headers();
    let named = headers.only("x-svc-webhook-secret").is_some_and(|value| equal(value, secret));
    let authorized = headers.only("authorization").is_some_and(|value| {
        let bare = equal(value, secret);
        bearer(value).is_some_and(|token| equal(token, secret)) || bare
    });
    named || authorized
}

/// The token after `Bearer`, whose case doesn't matter.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, rest) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| rest.trim_ascii())
}

/// Compares digests, so that neither content nor length shows in the time it takes. An empty secret equals nothing.
fn equal(offered: &[u8], secret: &Secret) -> bool {
    let (ours, theirs) = (Sha256::digest(secret.reveal().as_bytes()), Sha256::digest(offered));
    !secret.reveal().is_empty() && bool::from(ours.as_slice().ct_eq(theirs.as_slice()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(fields: &[(&str, &str)]) -> Head {
        Head::for_test("GET", "/", fields)
    }

    #[test]
    fn a_bearer_token_is_taken_once_and_whole() {
        let secret = Secret::new("s3cret");
        let check = |fields: &[(&str, &str)], expected: bool| {
            assert_eq!(bears(&head(fields), &secret), expected, "{fields:?}");
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
        assert!(!bears(&head(&[("Authorization", "Bearer ")]), &Secret::new("")));
    }

    #[test]
    fn a_webhook_secret_comes_in_three_ways() {
        let secret = Secret::new("s3cret");
        let check = |fields: &[(&str, &str)], expected: bool| {
            assert_eq!(bears_webhook_secret(&head(fields), &secret), expected, "{fields:?}");
        };
        check(&[("X-Svc-Webhook-Secret", "s3cret")], true);
        check(&[("Authorization", "s3cret")], true);
        check(&[("Authorization", "Bearer s3cret")], true);
        check(&[("X-Svc-Webhook-Secret", "s3cret"), ("Authorization", "Bearer s3cret")], true);
        check(&[("X-Svc-Webhook-Secret", "wrong"), ("Authorization", "Bearer s3cret")], true);
        check(&[("X-Svc-Webhook-Secret", "s3cret"), ("X-Svc-Webhook-Secret", "s3cret")], false);
        check(&[("X-Svc-Webhook-Secret", "Bearer s3cret")], false);
        check(&[], false);
        assert!(!bears_webhook_secret(&head(&[("Authorization", "")]), &Secret::new("")));
        assert!(bears_webhook_secret(&head(&[("Authorization", "Bearer x")]), &Secret::new("Bearer x")));
    }
}
