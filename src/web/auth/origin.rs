//! Protection from cross-site request forgery.
//!
//! Browsers state a request's origin: current ones in `Sec-Fetch-Site`, all in `Origin` for unsafe methods. A client that
//! sends neither is not a browser, so no foreign page controls it.

use crate::http::{ApiError, ErrorCode, Method, RequestHead};

/// The service's origin as browsers see it.
#[derive(Debug, Clone)]
pub struct Origin {
    /// `scheme://host[:port]`, if configured.
    public_url: Option<String>,
}

impl Origin {
    /// `public_url`: without a trailing `/`.
    pub fn new(public_url: Option<String>) -> Self {
        Self { public_url }
    }

    pub fn is_https(&self) -> bool {
        self.public_url.as_deref().is_some_and(|url| url.starts_with("https://"))
    }

    /// # Errors
    /// `forbidden_origin`.
    pub fn check(&self, head: &RequestHead) -> Result<(), ApiError> {
        let unsafe_method = match head.method() {
            Method::Get | Method::Head | Method::Options => false,
            Method::Post | Method::Put | Method::Patch | Method::Delete | Method::Other => true,
        };
        if !unsafe_method || self.is_own(head) {
            return Ok(());
        }
        Err(ApiError::of(ErrorCode::ForbiddenOrigin))
    }

    fn is_own(&self, head: &RequestHead) -> bool {
        let headers = head.headers();
        let mut sites = headers.all("sec-fetch-site").peekable();
        if sites.peek().is_some() {
            return sites.all(|site| site == b"same-origin" || site == b"none");
        }
        headers.all("origin").all(|origin| self.names_us(origin, head))
    }

    fn names_us(&self, origin: &[u8], head: &RequestHead) -> bool {
        let Ok(origin) = std::str::from_utf8(origin) else { return false };
        if let Some(public) = &self.public_url
            && origin.eq_ignore_ascii_case(public)
        {
            return true;
        }
        let authority = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        let host = head.headers().only("host").and_then(|host| std::str::from_utf8(host).ok());
        matches!((authority, host), (Some(authority), Some(host)) if authority.eq_ignore_ascii_case(host))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(method: &str, fields: &[(&str, &str)], expected: bool) {
        let origin = Origin::new(Some("https://lake.example".into()));
        // Its `Host` is `x`.
        let head = RequestHead::for_test(method, "/api/settings", fields);
        assert_eq!(origin.check(&head).is_ok(), expected, "{method} {fields:?}");
    }

    #[test]
    fn cross_site_requests_are_rejected_and_non_browsers_pass() {
        check("PUT", &[], true);
        check("PUT", &[("Sec-Fetch-Site", "same-origin")], true);
        check("PUT", &[("Sec-Fetch-Site", "none")], true);
        check("PUT", &[("Sec-Fetch-Site", "same-site")], false);
        check("PUT", &[("Sec-Fetch-Site", "cross-site")], false);
        check("PUT", &[("Sec-Fetch-Site", "same-origin"), ("Sec-Fetch-Site", "cross-site")], false);
        check("PUT", &[("Sec-Fetch-Site", "cross-site"), ("Origin", "https://lake.example")], false);
        check("GET", &[("Sec-Fetch-Site", "cross-site")], true);
        check("HEAD", &[("Origin", "https://evil.example")], true);
    }

    #[test]
    fn older_browsers_are_checked_by_origin() {
        for own in ["https://lake.example", "http://x", "https://X", "HTTPS://LAKE.example"] {
            check("POST", &[("Origin", own)], true);
            check("DELETE", &[("Origin", own)], true);
        }
        for other in ["null", "https://evil.example", "https://lake.example.evil", "http://x:3001", "file://"] {
            check("POST", &[("Origin", other)], false);
            check("PATCH", &[("Origin", other)], false);
        }
    }
}
