//! Whether secrets are strong enough. Never shows one.

use super::check::CheckResult;
use super::context::DoctorContext;
use crate::adapters::password::PasswordHash;
use crate::config::{KvConfig, RedisConfig, Secret, WithWarnings};

/// Shorter ones can be guessed by brute force.
const SECRET_BYTES_MIN: usize = 16;
/// Common placeholders from examples.
const KNOWN: &[&str] =
    &["admin", "changeme", "change-me", "example", "lakemill", "minioadmin", "password", "secret", "test", "token"];
const REPLACE_ADVICE: &str = "create a new one, e.g. with `openssl rand -hex 32`, and replace it wherever it is used";

pub(super) fn strength(context: &DoctorContext) -> Vec<CheckResult> {
    let secrets = secrets(context);
    if secrets.is_empty() {
        return vec![CheckResult::skipped("the environment is incomplete")];
    }
    let mut findings: Vec<CheckResult> = secrets.iter().filter_map(|(name, secret)| weak(name, secret)).collect();
    for (at, (name, secret)) in secrets.iter().enumerate() {
        for (other, _) in secrets[at + 1..].iter().filter(|(_, theirs)| theirs == secret) {
            let message = format!("{name} and {other} are the same, so a leak of one reveals both");
            findings.push(CheckResult::warning(message, REPLACE_ADVICE));
        }
    }
    findings.extend(password_hash(context));
    findings.extend(open_redis(context));
    if findings.is_empty() {
        findings.push(CheckResult::ok("long enough and distinct"));
    }
    findings.extend(metrics(context));
    findings
}

/// The secrets that can be judged, with their variables.
fn secrets(context: &DoctorContext) -> Vec<(&'static str, &Secret)> {
    let mut secrets = Vec::new();
    if let Ok(WithWarnings { config, .. }) = &context.worker {
        secrets.push(("SVC_WORKER_TOKEN", &config.worker_token));
        secrets.push(("SVC_WEBHOOK_SECRET", &config.webhook_secret));
        secrets.extend(config.server.metrics_token.as_ref().map(|token| ("SVC_METRICS_TOKEN", token)));
    } else if let Ok(WithWarnings { config, .. }) = &context.web {
        secrets.push(("SVC_WORKER_TOKEN", &config.worker_token));
        secrets.extend(config.server.metrics_token.as_ref().map(|token| ("SVC_METRICS_TOKEN", token)));
    }
    secrets
}

fn weak(name: &str, secret: &Secret) -> Option<CheckResult> {
    let text = secret.reveal();
    let bare = text.trim().trim_end_matches(|c: char| c.is_ascii_digit() || "!.-_".contains(c)).to_ascii_lowercase();
    if KNOWN.contains(&bare.as_str()) {
        return Some(CheckResult::problem(
            format!("{name} is a common placeholder and easily guessed"),
            REPLACE_ADVICE,
        ));
    }
    let found = text.len();
    (found < SECRET_BYTES_MIN).then(|| {
        CheckResult::warning(format!("{name} has {found} bytes, expected at least {SECRET_BYTES_MIN}"), REPLACE_ADVICE)
    })
}

/// A bcrypt hash has no parameters to assess here.
fn password_hash(context: &DoctorContext) -> Option<CheckResult> {
    let hash = context.web.as_ref().ok()?.config.password_hash.reveal();
    let error = PasswordHash::parse(hash).err().filter(|_| hash.starts_with("$argon2id$"))?;
    let advice = "create one with `lakemill hash-password`";
    Some(CheckResult::problem(format!("SVC_ADMIN_PASSWORD_HASH: {error}"), advice))
}

/// A Redis on another machine without a password is open to its whole network.
fn open_redis(context: &DoctorContext) -> Option<CheckResult> {
    let url = match &context.kv.as_ref().ok()?.config {
        KvConfig::Redis(RedisConfig { certificate: Some(_), .. }) => return None,
        KvConfig::Redis(redis) => url::Url::parse(redis.url.reveal()).ok()?,
        KvConfig::Sqlite(_) => return None,
    };
    let here = match url.host()? {
        // For unknown schemes, the parser takes every IPv4 address for a name.
        url::Host::Domain(name) => {
            name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
        }
        url::Host::Ipv4(address) => address.is_loopback(),
        url::Host::Ipv6(address) => address.is_loopback(),
    };
    (!here && url.password().is_none_or(str::is_empty)).then(|| {
        let message = "KV_URL has no password, and the server is not on this machine";
        CheckResult::warning(message, "set a password on the server (`requirepass` or an ACL) and in KV_URL")
    })
}

fn metrics(context: &DoctorContext) -> Option<CheckResult> {
    let config = &context.worker.as_ref().ok()?.config;
    config.server.metrics_token.is_none().then(|| {
        CheckResult::ok(
            "without SVC_METRICS_TOKEN only this machine can read /metrics, and nobody behind a proxy; \
         set it for scraping from elsewhere",
        )
    })
}
