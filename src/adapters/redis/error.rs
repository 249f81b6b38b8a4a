//! Maps errors of Redis and of the connection to the errors of the port.
//!
//! Must not: show a password. No text contains the URL or a request's arguments.

use std::io;

use ::redis::{ErrorKind, RedisError};

use crate::ports::kv::KvError;

/// Codes of transient errors.
const TRANSIENT: &[&str] = &["LOADING", "MASTERDOWN", "CLUSTERDOWN", "BUSY", "TRYAGAIN", "UNBLOCKED"];
/// Codes of errors that need an intervention.
const PERMANENT: &[&str] =
    &["OOM", READ_ONLY, "NOPERM", "NOAUTH", "WRONGPASS", "MISCONF", "NOREPLICAS", "MOVED", "ASK", "CROSSSLOT"];
const READ_ONLY: &str = "READONLY";
/// Redis's text for a long request before authentication.
const UNAUTHENTICATED: &str = "unauthenticated";
/// Code of our scripts and Redis for a key of another type.
const WRONG_TYPE: &str = "WRONGTYPE";
/// Key types that scripts expect, with their names in errors.
const TYPES: &[(&str, &str)] =
    &[("stream", "a stream"), ("zset", "a sorted set"), ("hash", "a hash"), ("list", "a list"), ("string", "a string")];
/// Texts from outside are truncated to this many characters.
const TEXT_CHARS_MAX: usize = 300;

/// Whether a group, or the stream of a blocking read, is missing.
pub(super) fn group_is_missing(error: &RedisError) -> bool {
    matches!(error.code(), Some("NOGROUP" | "UNBLOCKED"))
}

/// Whether the server doesn't know the script.
pub(super) fn script_is_missing(error: &RedisError) -> bool {
    error.code() == Some("NOSCRIPT")
}

/// Whether the server is a replica, which takes no writes.
pub(super) fn is_read_only(error: &RedisError) -> bool {
    error.code().is_some_and(|code| effective_code(code, error.detail().unwrap_or_default()) == READ_ONLY)
}

/// Whether the error is part of normal operation: an unknown script, a missing or existing group.
pub(super) fn is_expected(error: &RedisError) -> bool {
    script_is_missing(error) || group_is_missing(error) || error.code() == Some("BUSYGROUP")
}

pub(super) fn kv_error(operation: &'static str, error: &RedisError) -> KvError {
    let Some(code) = error.code() else { return without_code(operation, error) };
    let detail = error.detail().unwrap_or_default();
    let code = effective_code(code, detail);
    let text = || cut(&format!("{code} {detail}"));
    if code == WRONG_TYPE || detail.contains("is not an integer") || detail.contains("is not a valid float") {
        return wrong_type(operation, detail);
    }
    if TRANSIENT.contains(&code) || detail.contains("max number of clients") {
        return KvError::Unavailable { operation, source: io::Error::other(text()) };
    }
    if detail.contains(UNAUTHENTICATED) {
        return KvError::Refused { operation, reason: "the server requires a password".into() };
    }
    KvError::Refused { operation, reason: text() }
}

pub(super) fn malformed(operation: &'static str, expected: &'static str, found: &str) -> KvError {
    KvError::Malformed { operation, expected, found: cut(found) }
}

/// Maps an error of the connection, the protocol or the authentication.
fn without_code(operation: &'static str, error: &RedisError) -> KvError {
    if error.kind() == ErrorKind::AuthenticationFailed {
        return KvError::Refused { operation, reason: "the user or password is wrong".into() };
    }
    let source = if error.is_timeout() {
        io::Error::new(io::ErrorKind::TimedOut, "no reply in time")
    } else if error.kind() == ErrorKind::Parse {
        let text = format!("the server is not Redis: {error}; check host and port of KV_URL");
        io::Error::new(io::ErrorKind::InvalidData, cut(&text))
    } else if error.is_connection_refusal() {
        io::Error::new(io::ErrorKind::ConnectionRefused, error.to_string())
    } else if error.is_connection_dropped() {
        io::Error::new(io::ErrorKind::ConnectionReset, error.to_string())
    } else {
        io::Error::other(cut(&error.to_string()))
    };
    KvError::Unavailable { operation, source }
}

/// Redis 6.2 reports every error in a script as `ERR`, with the original code in the text.
fn effective_code<'a>(code: &'a str, detail: &str) -> &'a str {
    if code != "ERR" {
        return code;
    }
    let named = |candidate: &&str| detail.split(|c: char| !c.is_ascii_uppercase()).any(|word| word == *candidate);
    TRANSIENT.iter().chain(PERMANENT).chain(&[WRONG_TYPE]).find(|candidate| named(candidate)).copied().unwrap_or(code)
}

/// Our scripts report `<type> <found type> <key>`, Redis itself a sentence.
fn wrong_type(operation: &'static str, detail: &str) -> KvError {
    let mut words = detail.split(' ');
    let expected = words.next().and_then(|kind| TYPES.iter().find(|(name, _)| *name == kind));
    match (expected, words.next(), words.next()) {
        (Some((_, expected)), Some(found), Some(key)) => {
            malformed(operation, expected, &format!("{found} under {key}"))
        }
        _ => malformed(operation, "keys of this program", detail),
    }
}

fn cut(text: &str) -> String {
    text.trim_end().chars().take(TEXT_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server_error(text: &str) -> KvError {
        let value = ::redis::parse_redis_value(format!("-{text}\r\n").as_bytes()).unwrap();
        kv_error("test", &value.extract_error().unwrap_err())
    }

    #[test]
    fn transient_errors_are_unavailable() {
        for text in [
            "LOADING Redis is loading the dataset in memory",
            "MASTERDOWN Link with MASTER is down",
            "CLUSTERDOWN The cluster is down",
            "BUSY Redis is busy running a script",
            "ERR max number of clients reached",
        ] {
            assert!(matches!(server_error(text), KvError::Unavailable { .. }), "{text}");
        }
    }

    #[test]
    fn permanent_errors_are_refused() {
        for text in [
            "OOM command not allowed when used memory > 'maxmemory'.",
            "ERR Error running script (call to f_0): @user_script:3: -OOM command not allowed",
            "READONLY You can't write against a read only replica.",
            "NOPERM this user has no permissions",
            "NOAUTH Authentication required.",
            "MISCONF Redis is configured to save RDB snapshots",
            "ERR unknown command 'XAUTOCLAIM'",
        ] {
            assert!(matches!(server_error(text), KvError::Refused { .. }), "{text}");
        }
    }

    #[test]
    fn key_of_another_type_is_named() {
        let error = server_error("WRONGTYPE zset string svc:jobs:delayed");
        assert!(error.to_string().contains("expected a sorted set, found `string under svc:jobs:delayed`"), "{error}");
        for text in [
            "WRONGTYPE Operation against a key holding the wrong kind of value",
            "ERR Error running script: @user_script:1: WRONGTYPE Operation against a key",
            "ERR value is not an integer or out of range",
        ] {
            assert!(matches!(server_error(text), KvError::Malformed { .. }), "{text}");
        }
    }

    #[test]
    fn socket_errors_are_unavailable() {
        let io = |kind| kv_error("test", &RedisError::from(io::Error::from(kind)));
        for kind in [io::ErrorKind::BrokenPipe, io::ErrorKind::UnexpectedEof, io::ErrorKind::ConnectionRefused] {
            assert!(matches!(io(kind), KvError::Unavailable { .. }), "{kind:?}");
        }
        let KvError::Unavailable { source, .. } = io(io::ErrorKind::WouldBlock) else { panic!() };
        assert_eq!(source.kind(), io::ErrorKind::TimedOut);
    }
}
