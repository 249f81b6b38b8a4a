//! Short exclusive rights to single names.

use std::time::Duration;

use rusqlite::params;

use crate::ports::kv::{KeyLocks, KvResult};

use super::SqliteKv;
use super::entries::limit;
use super::jobs::after;
use super::queue::EXPIRED_AT_ONCE;

impl KeyLocks for SqliteKv {
    fn try_lock(&self, name: &str, token: &str, ttl: Duration) -> KvResult<bool> {
        self.db.write("lock a name", |step| {
            step.run(
                "DELETE FROM key_locks WHERE name IN
                     (SELECT name FROM key_locks WHERE expires_ms <= ?1 ORDER BY expires_ms LIMIT ?2)",
                [step.now, limit(EXPIRED_AT_ONCE)],
            )?;
            let taken = step.run(
                "INSERT INTO key_locks (name, token, expires_ms) VALUES (?1, ?2, ?3)
                 ON CONFLICT (name) DO UPDATE SET token = excluded.token, expires_ms = excluded.expires_ms
                 WHERE token = excluded.token OR expires_ms <= ?4",
                params![name, token, after(step.now, ttl), step.now],
            )?;
            Ok(taken > 0)
        })
    }

    fn unlock(&self, name: &str, token: &str) -> KvResult<()> {
        self.db.write("unlock a name", |step| {
            step.run("DELETE FROM key_locks WHERE name = ?1 AND token = ?2", [name, token])?;
            Ok(())
        })
    }
}
