//! All keys, with their Redis types. No other file spells a key.

use crate::domain::digest::sha256_hex;
use crate::domain::job::{JobId, JobPosition};
use crate::domain::name::{QueryId, Slug};

/// The consumer group of [`STREAM`].
pub const GROUP: &str = "svc-workers";
/// Consumers of [`GROUP`] that entries are pending for until a worker claims them: those of jobs that a person or a
/// program requested, and automatic ones. No worker has such a name.
pub const QUEUED_MANUAL: &str = "!manual";
pub const QUEUED_AUTOMATIC: &str = "!automatic";
/// Stream: jobs to run. An entry is deleted when its job ends, waits or is dead-lettered.
pub const STREAM: &str = "svc:jobs:stream";
/// Sorted set: ids of waiting jobs by due ms.
pub const DELAYED: &str = "svc:jobs:delayed";
/// List: entries without a valid pipeline, as JSON, newest first.
pub const DEAD: &str = "svc:jobs:dead";
/// Sorted set: slugs with an open debounce window by due ms.
pub const WINDOWS: &str = "svc:debounce:windows";
/// Hash: slug to the ms of the first event of its window.
pub const FIRST_EVENTS: &str = "svc:debounce:first";
/// Prefix of [`window_changes`].
pub const WINDOW_CHANGES: &str = "svc:debounce:keys:";
/// Prefix of [`job_changes`].
pub const JOB_CHANGES: &str = "svc:jobs:keys:";
/// Hash: slug to the last fence.
pub const FENCES: &str = "svc:fence";
/// String: exists while the store is initialized.
pub const EPOCH: &str = "svc:epoch";

/// String: the last entry of the stream that was checked for adoption.
pub const ADOPTED: &str = "svc:jobs:adopted";
/// String: the maximum attempts of a job, as workers last set it.
pub const ATTEMPTS_MAX: &str = "svc:jobs:attempts_max";
/// Sorted set, all scores 0: positions and pipelines of ended jobs; see [`indexed`].
pub const ENDED: &str = "svc:jobs:ended";
/// Sorted set: like [`ENDED`], of those that failed.
pub const FAILED: &str = "svc:jobs:failed";
/// Prefix of [`ended_of`].
pub const ENDED_OF: &str = "svc:jobs:ended:";
/// Prefix of [`failed_of`].
pub const FAILED_OF: &str = "svc:jobs:failed:";
/// Hash: `built` once the records of all pipelines are in the index of ended jobs, `since_ms` if older ones were removed,
/// `marks` (the last score of [`UNINDEXED`]).
pub const JOB_INDEX: &str = "svc:jobs:index";
/// Sorted set: slugs of pipelines whose records are to be indexed, by mark.
pub const UNINDEXED: &str = "svc:jobs:unindexed";
/// Sorted set with a TTL: slugs of pipelines to compare by due ms.
pub const RECHECKS: &str = "svc:rechecks";

/// Sorted set: slugs of pipelines whose run a comparison requested by due ms.
pub const RUN_REQUESTS: &str = "svc:runs:requested";

/// Hash: slug, or `*` for all pipelines, to the ms at which it was paused, a space, and the reason.
pub const PAUSES: &str = "svc:pauses";

/// Sorted set: ids of notifications with a pending delivery by due ms.
pub const NOTIFICATIONS_DUE: &str = "svc:notify:due";
/// Sorted set, all scores 0: ids of all notifications.
pub const NOTIFICATIONS: &str = "svc:notify:all";
/// Prefix of [`notification`].
pub const NOTIFICATION: &str = "svc:notify:item:";
/// String with a TTL: names of the workers' targets, as JSON.
pub const NOTIFICATION_TARGETS: &str = "svc:notify:targets";

/// The write probe: several types, finally a string with a TTL.
pub const PROBE: &str = "svc:probe";

/// Prefix of [`live`].
pub const LIVE: &str = "svc:jobs:live:";
/// Prefix of [`message`].
pub const MESSAGE: &str = "svc:jobs:message:";
/// Prefix of [`active`].
pub const ACTIVE: &str = "svc:jobs:active:";
/// Prefix of [`tombstone`].
pub const TOMBSTONE: &str = "svc:tombstone:";

const LOGIN_SCOPE_BYTES_MAX: usize = 64;

/// String: a job as JSON; expires an hour after its end.
pub fn live(job_id: &JobId) -> String {
    format!("{LIVE}{job_id}")
}

/// Hash, while a job is active: the fields of its message, `entry` (its id in the stream), `max_attempts`, `attempts`,
/// `lost` (starts whose process died), `running` (fence of the unfinished start), its `worker` and `started_at` (ms),
/// `publishing`, `cancel`; while it waits, `not_before` (ms) and `reason`.
pub fn message(job_id: &JobId) -> String {
    format!("{MESSAGE}{job_id}")
}

/// Hash: the keys named by the events of a window, each as a field, relative to the pipeline's prefix; and in the field
/// `""` their size in bytes and the window's due ms, or `all`. Without a window: the initial content of the next one.
pub fn window_changes(pipeline: &Slug) -> String {
    format!("{WINDOW_CHANGES}{pipeline}")
}

/// Hash with a TTL, while a job is active: like [`window_changes`], of the job's window. Missing if the job checks all
/// keys.
pub fn job_changes(job_id: &JobId) -> String {
    format!("{JOB_CHANGES}{job_id}")
}

/// Sorted set: ids of active jobs by enqueued ms.
pub fn active(pipeline: &Slug) -> String {
    format!("{ACTIVE}{pipeline}")
}

/// Sorted set, all scores 0: positions of a pipeline's ended jobs; see [`indexed`].
pub fn ended_of(pipeline: &Slug) -> String {
    format!("{ENDED_OF}{pipeline}")
}

/// Sorted set: like [`ended_of`], of those that failed.
pub fn failed_of(pipeline: &Slug) -> String {
    format!("{FAILED_OF}{pipeline}")
}

/// A member of [`ended_of`], whose text sorts like the position. In [`ENDED`] a space and the slug follow.
pub fn indexed(position: &JobPosition) -> String {
    format!("{}{}", indexed_at(position.at_ms), position.job_id)
}

/// The beginning of a member of [`ended_of`].
pub fn indexed_at(ms: i64) -> String {
    format!("{:016x} ", ms.max(0))
}

/// Prefix of [`run_lock`].
pub const RUN_LOCK: &str = "svc:lock:run:";

/// String with a TTL: the token of the pipeline's lock, `<job id>/…` or `!hold/…`.
pub fn run_lock(pipeline: &Slug) -> String {
    format!("{RUN_LOCK}{pipeline}")
}

/// String with a TTL: the token of the lock on a name.
pub fn name_lock(name: &str) -> String {
    format!("svc:lock:name:{name}")
}

/// String with a TTL: the ms at which a pipeline was deleted or renamed.
pub fn tombstone(pipeline: &Slug) -> String {
    format!("{TOMBSTONE}{pipeline}")
}

/// String with a TTL: the pause in ms after the last run that was enqueued for a pipeline of [`RECHECKS`], and the ms at
/// which it ends.
pub fn recheck_pause(pipeline: &Slug) -> String {
    format!("svc:recheck:{pipeline}")
}

/// Hash: `body` (a notification as JSON), `deliveries` (JSON), and while it is claimed, or was, `token`.
pub fn notification(id: &str) -> String {
    format!("{NOTIFICATION}{id}")
}

/// String with a TTL: the state of a condition.
pub fn incident(key: &str) -> String {
    format!("svc:notify:incident:{key}")
}

/// String with a TTL: when a session was opened, and its latest end, in ms.
pub fn session(token_sha256: &str) -> String {
    format!("svc:sessions:{token_sha256}")
}

/// String with a TTL: the token of a running query, prefixed with `!` once it is cancelled.
pub fn query(pipeline: &Slug, id: &QueryId) -> String {
    format!("svc:query:{pipeline}:{id}")
}

/// Hash with a TTL: `count` of failed logins in a scope (a client's address, a network, all), `last_ms`.
pub fn login(scope: &str) -> String {
    let plain = scope.len() <= LOGIN_SCOPE_BYTES_MAX && scope.bytes().all(|b| b.is_ascii_graphic());
    if plain { format!("svc:login:{scope}") } else { format!("svc:login:{}", sha256_hex(scope.as_bytes())) }
}

/// String with a TTL: exists if the address has logged in recently.
pub fn known_login(address: &str) -> String {
    login(&format!("known:{address}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_match_the_contract() {
        let (slug, id) = (Slug::parse("trips").unwrap(), JobId::parse("j-1").unwrap());
        assert_eq!(live(&id), "svc:jobs:live:j-1");
        assert_eq!(message(&id), "svc:jobs:message:j-1");
        assert_eq!(active(&slug), "svc:jobs:active:trips");
        assert_eq!(window_changes(&slug), "svc:debounce:keys:trips");
        assert_eq!(job_changes(&id), "svc:jobs:keys:j-1");
        assert_eq!(run_lock(&slug), "svc:lock:run:trips");
        assert_eq!(session("ab"), "svc:sessions:ab");
        assert_eq!(login("2001:db8::1"), "svc:login:2001:db8::1");
    }

    #[test]
    fn invalid_address_is_hashed() {
        for address in ["a b", "", "x\r\ny", &"1".repeat(65)] {
            assert!(login(address).len() <= "svc:login:".len() + 64, "{address}");
            assert!(!login(address).contains([' ', '\r', '\n']));
        }
    }
}
