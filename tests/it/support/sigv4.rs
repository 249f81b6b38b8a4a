//! A store's check of signatures in headers, made from AWS's documentation of Signature Version 4.

use chrono::{NaiveDateTime, TimeDelta, Utc};
use lakemill::domain::digest::{hmac_sha256_hex, sha256_hex};

use super::http_proxy::ProxiedRequest;
use super::s3_server::{ACCESS_KEY, REGION, SECRET_KEY};

/// The code of the refusal, as S3 answers.
pub fn check(request: &ProxiedRequest) -> Result<(), &'static str> {
    check_in(request, REGION)
}

pub fn check_in(request: &ProxiedRequest, region: &str) -> Result<(), &'static str> {
    if request.target.contains("X-Amz-") {
        return Err("AccessDenied");
    }
    let authorization = request.header("authorization").ok_or("AccessDenied")?;
    let fields = authorization.strip_prefix("AWS4-HMAC-SHA256 ").ok_or("AuthorizationHeaderMalformed")?;
    let field = |name: &str| {
        let found = fields.split(", ").find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
        found.ok_or("AuthorizationHeaderMalformed")
    };
    let date = request.header("x-amz-date").ok_or("AccessDenied")?;
    let at = NaiveDateTime::parse_from_str(date, "%Y%m%dT%H%M%SZ").map_err(|_| "AccessDenied")?.and_utc();
    if (Utc::now() - at).abs() > TimeDelta::minutes(15) {
        return Err("RequestTimeTooSkewed");
    }
    let scope = format!("{}/{region}/s3/aws4_request", &date[..8]);
    if field("Credential")? != format!("{ACCESS_KEY}/{scope}") {
        return Err("AuthorizationHeaderMalformed");
    }
    let names: Vec<&str> = field("SignedHeaders")?.split(';').collect();
    let is_covered = |name: &str| names.contains(&name) || !(name.starts_with("x-amz-") || name == "host");
    if !names.is_sorted() || !request.headers.iter().all(|(name, _)| is_covered(&name.to_ascii_lowercase())) {
        return Err("AccessDenied");
    }
    let hash = request.header("x-amz-content-sha256").ok_or("InvalidRequest")?;
    if hash != "UNSIGNED-PAYLOAD" && hash != sha256_hex(&request.body) {
        return Err("XAmzContentSHA256Mismatch");
    }
    let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
    let mut pairs: Vec<&str> = query.split('&').filter(|pair| !pair.is_empty()).collect();
    pairs.sort_unstable();
    let lines: String =
        names.iter().map(|name| format!("{name}:{}\n", request.header(name).unwrap_or_default().trim())).collect();
    let (pairs, names) = (pairs.join("&"), names.join(";"));
    let canonical = format!("{}\n{path}\n{pairs}\n{lines}\n{names}\n{hash}", request.method);
    let text = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{}", sha256_hex(canonical.as_bytes()));
    let key = scope
        .split('/')
        .fold(format!("AWS4{SECRET_KEY}").into_bytes(), |key, part| bytes(&hmac_sha256_hex(&key, &[part.as_bytes()])));
    let is_right = field("Signature")? == hmac_sha256_hex(&key, &[text.as_bytes()]);
    if is_right { Ok(()) } else { Err("SignatureDoesNotMatch") }
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}
