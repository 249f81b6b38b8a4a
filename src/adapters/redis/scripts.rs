//! The Lua scripts, one file each, and their calls.
//!
//! Each script starts with the prelude: its head, generated here, names the fields of a job's message; see
//! [`JobMessage::FIELDS`].

use std::sync::LazyLock;
use std::time::Duration;

use ::redis::{Cmd, RedisError, Script, Value};

use super::connection::{Pool, Repeat};
use super::error::script_is_missing;
use super::keys::{QUEUED_AUTOMATIC, QUEUED_MANUAL};
use super::reply::OperationReply;
use crate::domain::job::JobMessage;
use crate::domain::job::message::TRIGGER_AUTO;
use crate::ports::kv::KvResult;

/// A script; the server identifies it by its hash.
pub(super) struct Source {
    name: &'static str,
    repeat: Repeat,
    compiled: LazyLock<(String, Script)>,
}

/// The text of a script, with its prelude.
fn compile(body: &str) -> (String, Script) {
    let fields = JobMessage::FIELDS.map(|name| format!("'{name}'")).join(", ");
    let names = format!(
        "local message_fields = {{{fields}}}; \
         local job_field, pipeline_field, kind_field, automatic_kind = \
         message_fields[1], message_fields[2], message_fields[5], '{TRIGGER_AUTO}'; \
         local queued_manual, queued_automatic = '{QUEUED_MANUAL}', '{QUEUED_AUTOMATIC}'"
    );
    let text = format!("{names}\n{}\n{body}", include_str!("scripts/prelude.lua"));
    let script = Script::new(&text);
    (text, script)
}

macro_rules! scripts {
    ($($name:ident = $file:literal, $repeat:ident;)*) => {$(
        pub(super) static $name: Source = {
            const BODY: &str = include_str!(concat!("scripts/", $file, ".lua"));
            Source { name: $file, repeat: Repeat::$repeat, compiled: LazyLock::new(|| compile(BODY)) }
        };
    )*

    #[cfg(test)]
    const ALL: &[&Source] = &[$(&$name),*];
    };
}

// `Idempotent`: repeating it changes nothing, and gives the same reply.
scripts! {
    ACTIVE = "active", Idempotent;
    ADOPT = "adopt", Idempotent;
    BEGIN_PUBLISHING = "begin_publishing", Idempotent;
    DEAD_LETTER = "dead_letter", Idempotent;
    CANCEL = "cancel", Idempotent;
    CLAIM = "claim", Never;
    RECLAIM = "reclaim", Never;
    REQUEST_RUNS = "request_runs", Idempotent;
    REQUESTED_RUNS = "requested_runs", Idempotent;
    ENQUEUE_REQUESTED = "enqueue_requested", Never;
    CLAMP = "clamp", Idempotent;
    CLOSE_WINDOW = "close_window", Never;
    COUNTS = "counts", Idempotent;
    DROP_PIPELINE = "drop_pipeline", Idempotent;
    DUE_WINDOWS = "due_windows", Idempotent;
    ENDED = "ended", Idempotent;
    ENQUEUE = "enqueue", Never;
    EXTEND_WINDOWS = "extend_windows", Idempotent;
    FINISH = "finish", Never;
    FORGET_ENDED = "forget_ended", Idempotent;
    FIRE_WINDOW = "fire_window", Never;
    GROUP = "group", Idempotent;
    HEARTBEAT = "heartbeat", Idempotent;
    LOCK_PIPELINE = "lock_pipeline", Never;
    INDEX_ENDED = "index_ended", Idempotent;
    JOB = "job", Idempotent;
    MARK_INDEXED = "mark_indexed", Idempotent;
    NEWEST_ENDS = "newest_ends", Idempotent;
    REMOVE_CONSUMER = "remove_consumer", Idempotent;
    LOGIN_ADMIT = "login_admit", Never;
    LOGIN_SUCCESS = "login_success", Never;
    PROBE_WRITE = "probe_write", Idempotent;
    REQUEUE = "requeue", Never;
    QUERY_REGISTER = "query_register", Idempotent;
    QUERY_CANCEL = "query_cancel", Idempotent;
    QUERY_CANCELLED = "query_cancelled", Idempotent;
    NOTIFY_ADD = "notify_add", Idempotent;
    NOTIFY_CLAIM = "notify_claim", Never;
    NOTIFY_INCIDENT = "notify_incident", Idempotent;
    NOTIFY_LIST = "notify_list", Idempotent;
    NOTIFY_RECORD = "notify_record", Idempotent;
    OLDEST_DUE = "oldest_due", Idempotent;
    QUERY_UNREGISTER = "query_unregister", Idempotent;
    RECHECK_ADD = "recheck_add", Idempotent;
    RECHECK_COMPLETE = "recheck_complete", Never;
    RECHECK_TAKE = "recheck_take", Never;
    RELEASE = "release", Never;
    RELEASE_DUE = "release_due", Never;
    IS_INITIALIZED = "is_initialized", Idempotent;
    RENEW = "renew", Idempotent;
    RESUME = "resume", Never;
    REQUEUE_LOST = "requeue_lost", Never;
    REVIVE_PIPELINE = "revive_pipeline", Idempotent;
    SESSION_OPEN = "session_open", Idempotent;
    SESSION_TOUCH = "session_touch", Idempotent;
    UPDATE_RECORD = "update_record", Idempotent;
    START = "start", Idempotent;
    UNADOPTED = "unadopted", Idempotent;
    REFUND_ATTEMPT = "refund_attempt", Never;
    TRY_LOCK = "try_lock", Idempotent;
    UNLOCK = "unlock", Idempotent;
}

/// A call of a script. Keys and arguments are in the order of the script's head.
pub(super) struct Call {
    source: &'static Source,
    keys: Vec<String>,
    arguments: Vec<String>,
}

impl Call {
    pub(super) fn new<const N: usize>(source: &'static Source, keys: [&str; N]) -> Self {
        Self { source, keys: keys.map(str::to_owned).to_vec(), arguments: Vec::new() }
    }

    /// For any number of keys.
    pub(super) fn with_keys(source: &'static Source, keys: impl Iterator<Item = String>) -> Self {
        Self { source, keys: keys.collect(), arguments: Vec::new() }
    }

    pub(super) fn key(mut self, key: &str) -> Self {
        self.keys.push(key.to_owned());
        self
    }

    pub(super) fn arg(mut self, value: impl ToString) -> Self {
        self.arguments.push(value.to_string());
        self
    }

    /// Whole milliseconds, at least 1, the shortest TTL of Redis.
    pub(super) fn ms(self, duration: Duration) -> Self {
        self.arg(duration.as_millis().clamp(1, i64::MAX as u128 / 2))
    }

    pub(super) fn args(mut self, values: impl IntoIterator<Item = String>) -> Self {
        self.arguments.extend(values);
        self
    }

    /// Names and values of a message's fields.
    pub(super) fn fields(self, fields: [(&'static str, String); JobMessage::FIELDS.len()]) -> Self {
        self.args(fields.into_iter().flat_map(|(name, value)| [name.to_owned(), value]))
    }

    pub(super) fn run(self, pool: &Pool) -> KvResult<OperationReply> {
        let name = self.source.name;
        let value = self.evaluate(pool).map_err(|error| pool.kv_error(name, &error))?;
        Ok(OperationReply::new(name, value))
    }

    /// Loads the script again if the server restarted or its scripts were flushed.
    fn evaluate(&self, pool: &Pool) -> Result<Value, RedisError> {
        let (command, repeat) = (self.command(), self.source.repeat);
        match pool.try_request(repeat, &command, Duration::ZERO) {
            Err(error) if script_is_missing(&error) => {
                let mut load = ::redis::cmd("SCRIPT");
                load.arg("LOAD").arg(&self.source.compiled.0);
                pool.try_request(Repeat::Idempotent, &load, Duration::ZERO)?;
                pool.try_request(repeat, &command, Duration::ZERO)
            }
            outcome => outcome,
        }
    }

    fn command(&self) -> Cmd {
        let mut command = ::redis::cmd("EVALSHA");
        command.arg(self.source.compiled.1.get_hash()).arg(self.keys.len()).arg(&self.keys).arg(&self.arguments);
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_documents_its_arguments_and_reply() {
        for source in ALL {
            let head: Vec<&str> = source.compiled.0.lines().filter(|line| line.starts_with("-- ")).collect();
            for part in ["-- KEYS: ", "-- ARGV: ", "-- Returns: "] {
                assert!(head.iter().any(|line| line.starts_with(part)), "{} has no `{part}`", source.name);
            }
        }
    }

    /// The commands that a script calls.
    fn commands(source: &Source) -> std::collections::BTreeSet<&str> {
        let calls = source.compiled.0.split("redis.call('").chain(source.compiled.0.split("redis.pcall('"));
        let words = calls.skip(1).filter_map(|rest| rest.split('\'').next());
        words.filter(|word| word.bytes().all(|b| b.is_ascii_uppercase())).collect()
    }

    #[test]
    fn write_probe_uses_every_writing_command() {
        const READ_COMMANDS: &[&str] = &[
            "EXISTS",
            "GET",
            "HEXISTS",
            "HGET",
            "HLEN",
            "HMGET",
            "LLEN",
            "MGET",
            "PTTL",
            "TIME",
            "TYPE",
            "XINFO",
            "XLEN",
            "XPENDING",
            "XRANGE",
            "XREVRANGE",
            "ZCARD",
            "ZRANGE",
            "ZRANGEBYLEX",
            "ZRANGEBYSCORE",
            "ZREVRANGEBYLEX",
            "ZSCORE",
        ];
        let proof = include_str!("scripts/probe_write.lua");
        let writing = ALL.iter().flat_map(|source| commands(source)).filter(|command| !READ_COMMANDS.contains(command));
        let missing: Vec<&str> = writing.filter(|command| !proof.contains(&format!("'{command}'"))).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    /// The head of the prelude lists the message fields, generated from [`JobMessage::FIELDS`].
    #[test]
    fn scripts_list_no_message_fields() {
        for source in ALL {
            let (head, body) = source.compiled.0.split_once('\n').unwrap();
            assert!(JobMessage::FIELDS.iter().all(|name| head.contains(&format!("'{name}'"))), "{head}");
            for name in ["trigger", "clean_run"] {
                assert!(!body.contains(name), "{} names the field `{name}`", source.name);
            }
        }
    }

    #[test]
    fn every_script_file_is_registered() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/adapters/redis/scripts");
        let files = std::fs::read_dir(folder).unwrap().count();
        assert_eq!(files, ALL.len() + 1, "with the prelude");
    }
}
