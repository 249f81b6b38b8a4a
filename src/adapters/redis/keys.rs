//! Every key, with its Redis type. No other file spells one.

use crate::domain::digest::sha256_hex;
use crate::domain::job::JobId;
use crate::domain::name::{QueryId, Slug};

/// The consumer group of [`STREAM`].
pub const GROUP: &str = "svc-workers";
/// Stream: what is to be done; an entry goes when its job ends, waits, or is buried.
pub const STREAM: &str = "svc:jobs:stream";
/// Sorted set: ids of waiting jobs by due ms.
pub const DELAYED: &str = "svc:jobs:delayed";
/// List: entries that no pipeline can own, as JSON, the newest first.
pub const DEAD: &str = "svc:jobs:dead";
/// Sorted set: slugs with an open debounce window by due ms.
pub const WINDOWS: &str = "svc:debounce:windows";
/// Hash: slug to the ms of the first event of its window.
pub const FIRST_EVENTS: &str = "svc:debounce:first";
/// Hash: slug to the last fence.
pub const FENCES: &str = "svc:fence";
/// String: is there while the store remembers what it was told.
pub const EPOCH: &str = "svc:epoch";

/// String: the last entry of the stream that was looked at for jobs of other programs.
pub const ADOPTED: &str = "svc:jobs:adopted";
/// String: starts of a job before it has failed, as workers said last.
pub const ATTEMPTS_MAX: &str = "svc:jobs:attempts_max";
/// Sorted set with an end: slugs of pipelines to be compared by due ms.
pub const RECHECKS: &str = "svc:rechecks";

/// What proves that the server takes writes: of a type after the other, at last a string with an end.
pub const PROBE: &str = "svc:probe";

/// Start of [`live`].
pub const LIVE: &str = "svc:jobs:live:";
/// Start of [`message`].
pub const MESSAGE: &str = "svc:jobs:message:";
/// Start of [`active`].
pub const ACTIVE: &str = "svc:jobs:active:";
/// Start of [`tombstone`].
pub const TOMBSTONE: &str = "svc:tombstone:";

const LOGIN_SCOPE_BYTES_MAX: usize = 64;

/// String: a job as JSON; expires an hour after its end.
pub fn live(job_id: &JobId) -> String {
    format!("{LIVE}{job_id}")
}

/// Hash, from the enqueueing (or the first start) to the end: the six fields of the message, `entry` (its id in the
/// stream), `max_attempts`, `attempts`, `lost` (starts whose end nobody told), `running` (fence of the start whose end is
/// not known), its `worker` and `started_at` (ms), `publishing`, `cancel`; while it waits, `not_before` (ms) and
/// `reason`.
pub fn message(job_id: &JobId) -> String {
    format!("{MESSAGE}{job_id}")
}

/// Sorted set: ids of jobs that have not ended by enqueued ms.
pub fn active(pipeline: &Slug) -> String {
    format!("{ACTIVE}{pipeline}")
}

/// String with an end: the token of who holds the pipeline's lock, `<job id>/…` or `!hold/…`.
pub fn run_lock(pipeline: &Slug) -> String {
    format!("svc:lock:run:{pipeline}")
}

/// String with an end: the token of who has the lock on a name.
pub fn name_lock(name: &str) -> String {
    format!("svc:lock:name:{name}")
}

/// String with an end: the ms at which a pipeline was deleted or renamed.
pub fn tombstone(pipeline: &Slug) -> String {
    format!("{TOMBSTONE}{pipeline}")
}

/// String with an end: the pause in ms that began when a run was enqueued for a pipeline of [`RECHECKS`] last, and the
/// ms at which it is over.
pub fn recheck_pause(pipeline: &Slug) -> String {
    format!("svc:recheck:{pipeline}")
}

/// String with an end: when a session was opened and when it ends at the latest, in ms.
pub fn session(token_sha256: &str) -> String {
    format!("svc:sessions:{token_sha256}")
}

/// String with an end: the token of a query that runs, with a `!` before it once its end is wished.
pub fn query(pipeline: &Slug, id: &QueryId) -> String {
    format!("svc:query:{pipeline}:{id}")
}

/// Hash with an end: `count` of failed logins in a scope (a client's address, a network, all), `last_ms`.
pub fn login(scope: &str) -> String {
    let plain = scope.len() <= LOGIN_SCOPE_BYTES_MAX && scope.bytes().all(|b| b.is_ascii_graphic());
    if plain { format!("svc:login:{scope}") } else { format!("svc:login:{}", sha256_hex(scope.as_bytes())) }
}

/// String with an end: is there if the address has logged in lately.
pub fn known_login(address: &str) -> String {
    login(&format!("known:{address}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_the_contract() {
        let (slug, id) = (Slug::parse("trips").unwrap(), JobId::parse("j-1").unwrap());
        assert_eq!(live(&id), "svc:jobs:live:j-1");
        assert_eq!(message(&id), "svc:jobs:message:j-1");
        assert_eq!(active(&slug), "svc:jobs:active:trips");
        assert_eq!(run_lock(&slug), "svc:lock:run:trips");
        assert_eq!(session("ab"), "svc:sessions:ab");
        assert_eq!(login("2001:db8::1"), "svc:login:2001:db8::1");
    }

    #[test]
    fn an_address_that_is_none_makes_no_long_or_odd_key() {
        for address in ["a b", "", "x\r\ny", &"1".repeat(65)] {
            assert!(login(address).len() <= "svc:login:".len() + 64, "{address}");
            assert!(!login(address).contains([' ', '\r', '\n']));
        }
    }
}
