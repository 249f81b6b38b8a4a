//! The scripts, a file each, and the calling of one.

use std::sync::LazyLock;
use std::time::Duration;

use ::redis::{Cmd, RedisError, Script, Value};

use super::connection::{Pool, Repeat};
use super::error::script_is_missing;
use super::reply::Reply;
use crate::ports::kv::KvResult;

/// A script, known to the server by its hash.
pub(super) struct Source {
    name: &'static str,
    text: &'static str,
    repeat: Repeat,
    compiled: LazyLock<Script>,
}

macro_rules! scripts {
    ($($name:ident = $file:literal, $repeat:ident;)*) => {$(
        pub(super) static $name: Source = {
            const TEXT: &str =
                concat!(include_str!("scripts/prelude.lua"), "\n", include_str!(concat!("scripts/", $file, ".lua")));
            Source { name: $file, text: TEXT, repeat: Repeat::$repeat, compiled: LazyLock::new(|| Script::new(TEXT)) }
        };
    )*

    #[cfg(test)]
    const ALL: &[&Source] = &[$(&$name),*];
    };
}

// `Harmless`: sent twice it leaves, and tells, the same as sent once.
scripts! {
    ACTIVE = "active", Harmless;
    ADOPT = "adopt", Harmless;
    BEGIN_PUBLISHING = "begin_publishing", Harmless;
    DEAD_LETTER = "dead_letter", Harmless;
    CANCEL = "cancel", Harmless;
    CLAMP = "clamp", Harmless;
    CLOSE_WINDOW = "close_window", Never;
    COUNTS = "counts", Harmless;
    DROP_PIPELINE = "drop_pipeline", Harmless;
    DUE_WINDOWS = "due_windows", Harmless;
    ENQUEUE = "enqueue", Never;
    EXTEND_WINDOWS = "extend_windows", Harmless;
    FINISH = "finish", Never;
    FIRE_WINDOW = "fire_window", Never;
    GROUP = "group", Harmless;
    HEARTBEAT = "heartbeat", Harmless;
    LOCK_PIPELINE = "lock_pipeline", Never;
    JOB = "job", Harmless;
    REMOVE_CONSUMER = "remove_consumer", Harmless;
    LOGIN_ADMIT = "login_admit", Never;
    LOGIN_SUCCESS = "login_success", Never;
    PROBE_WRITE = "probe_write", Harmless;
    REQUEUE = "requeue", Never;
    QUERY_REGISTER = "query_register", Harmless;
    QUERY_CANCEL = "query_cancel", Harmless;
    QUERY_CANCELLED = "query_cancelled", Harmless;
    OLDEST_DUE = "oldest_due", Harmless;
    QUERY_UNREGISTER = "query_unregister", Harmless;
    RECHECK_ADD = "recheck_add", Harmless;
    RECHECK_COMPLETE = "recheck_complete", Never;
    RECHECK_TAKE = "recheck_take", Never;
    RELEASE = "release", Never;
    RELEASE_DUE = "release_due", Never;
    IS_INITIALIZED = "is_initialized", Harmless;
    RENEW = "renew", Harmless;
    REQUEUE_LOST = "requeue_lost", Never;
    SESSION_OPEN = "session_open", Harmless;
    SESSION_TOUCH = "session_touch", Harmless;
    UPDATE_RECORD = "update_record", Harmless;
    START = "start", Harmless;
    SWEEP = "sweep", Harmless;
    UNADOPTED = "unadopted", Harmless;
    REFUND_ATTEMPT = "refund_attempt", Never;
    TRY_LOCK = "try_lock", Harmless;
    UNLOCK = "unlock", Harmless;
}

/// One call of a script. Keys and arguments stand in the order that the script's head names.
pub(super) struct Call {
    source: &'static Source,
    keys: Vec<String>,
    arguments: Vec<String>,
}

impl Call {
    pub(super) fn new<const N: usize>(source: &'static Source, keys: [&str; N]) -> Self {
        Self { source, keys: keys.map(str::to_owned).to_vec(), arguments: Vec::new() }
    }

    /// With any number of keys.
    pub(super) fn with_keys(source: &'static Source, keys: impl Iterator<Item = String>) -> Self {
        Self { source, keys: keys.collect(), arguments: Vec::new() }
    }

    pub(super) fn arg(mut self, value: impl ToString) -> Self {
        self.arguments.push(value.to_string());
        self
    }

    /// Whole milliseconds, at least 1: Redis takes no less for an end of life.
    pub(super) fn ms(self, duration: Duration) -> Self {
        self.arg(duration.as_millis().clamp(1, i64::MAX as u128 / 2))
    }

    pub(super) fn args(mut self, values: impl IntoIterator<Item = String>) -> Self {
        self.arguments.extend(values);
        self
    }

    /// Names and values of a message, one after the other.
    pub(super) fn fields(self, fields: [(&'static str, String); 6]) -> Self {
        self.args(fields.into_iter().flat_map(|(name, value)| [name.to_owned(), value]))
    }

    pub(super) fn run(self, pool: &Pool) -> KvResult<Reply> {
        let name = self.source.name;
        let value = self.evaluate(pool).map_err(|error| pool.told(name, &error))?;
        Ok(Reply::new(name, value))
    }

    /// A server that restarted, or whose scripts were flushed, is told the script again.
    fn evaluate(&self, pool: &Pool) -> Result<Value, RedisError> {
        let (command, repeat) = (self.command(), self.source.repeat);
        match pool.try_request(repeat, &command, Duration::ZERO) {
            Err(error) if script_is_missing(&error) => {
                let mut load = ::redis::cmd("SCRIPT");
                load.arg("LOAD").arg(self.source.text);
                pool.try_request(Repeat::Harmless, &load, Duration::ZERO)?;
                pool.try_request(repeat, &command, Duration::ZERO)
            }
            outcome => outcome,
        }
    }

    fn command(&self) -> Cmd {
        let mut command = ::redis::cmd("EVALSHA");
        command.arg(self.source.compiled.get_hash()).arg(self.keys.len()).arg(&self.keys).arg(&self.arguments);
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_tells_what_it_takes_and_gives() {
        for source in ALL {
            let head: Vec<&str> = source.text.lines().filter(|line| line.starts_with("-- ")).collect();
            for part in ["-- KEYS: ", "-- ARGV: ", "-- Returns: "] {
                assert!(head.iter().any(|line| line.starts_with(part)), "{} has no `{part}`", source.name);
            }
        }
    }

    /// The commands that a script's own text calls.
    fn commands(source: &Source) -> std::collections::BTreeSet<&str> {
        let calls = source.text.split("redis.call('").chain(source.text.split("redis.pcall('"));
        let words = calls.skip(1).filter_map(|rest| rest.split('\'').next());
        words.filter(|word| word.bytes().all(|b| b.is_ascii_uppercase())).collect()
    }

    #[test]
    fn proof_of_a_write_uses_every_command_that_scripts_write_by() {
        const READING: &[&str] = &[
            "EXISTS",
            "GET",
            "HEXISTS",
            "HGET",
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
            "ZCARD",
            "ZRANGE",
            "ZRANGEBYSCORE",
            "ZSCORE",
        ];
        let proof = include_str!("scripts/probe_write.lua");
        let writing = ALL.iter().flat_map(|source| commands(source)).filter(|command| !READING.contains(command));
        let missing: Vec<&str> = writing.filter(|command| !proof.contains(&format!("'{command}'"))).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn every_script_file_is_one_of_them() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/adapters/redis/scripts");
        let files = std::fs::read_dir(folder).unwrap().count();
        assert_eq!(files, ALL.len() + 1, "with the prelude");
    }
}
