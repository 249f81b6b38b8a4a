//! Sessions and login throttling.

use std::time::Duration;

use rusqlite::{OptionalExtension as _, params};

use crate::domain::login::{KNOWN_LOGIN_S, LOGIN_MEMORY_S, LoginScope, LoginScopes};
use crate::ports::kv::KvResult;
use crate::ports::sessions::{Admission, LoginThrottle, Session, Sessions};

use super::db::KvTransaction;
use super::error::StepResult;
use super::kv::SqliteKv;
use super::units::{after, time};

/// A session whose stored end is too early by at most this fraction of `idle` counts as touched.
const TOUCH_SLACK: u32 = 16;

impl Sessions for SqliteKv {
    fn open(&self, token_sha256: &str, idle: Duration, max: Duration) -> KvResult<Session> {
        self.db.write("open a session", |step| {
            step.delete_expired("sessions", "token_sha256")?;
            let ends = after(step.now, max);
            let expires = after(step.now, idle).min(ends);
            step.run(
                "INSERT OR REPLACE INTO sessions (token_sha256, created_ms, ends_ms, expires_ms)
                 VALUES (?1, ?2, ?3, ?4)",
                params![token_sha256, step.now, ends, expires],
            )?;
            Ok(Session { created_at: time(step.now), ends_at: time(ends) })
        })
    }

    fn touch(&self, token_sha256: &str, idle: Duration) -> KvResult<Option<Session>> {
        // Every request touches a session, and a write waits for the disk: recently touched ones are only read.
        let (fresh, session) = self.db.read("read a session", |step| {
            let sql = "SELECT created_ms, ends_ms, expires_ms >= min(?3, ends_ms) FROM sessions
                       WHERE token_sha256 = ?1 AND expires_ms > ?2";
            let min = after(step.now, idle - idle / TOUCH_SLACK);
            let found = step.sql(sql)?.query_row(params![token_sha256, step.now, min], |row| {
                let session = Session { created_at: time(row.get(0)?), ends_at: time(row.get(1)?) };
                Ok((row.get::<_, bool>(2)?, Some(session)))
            });
            // A missing session needs no write either.
            Ok(found.optional()?.unwrap_or((true, None)))
        })?;
        if fresh {
            return Ok(session);
        }
        self.db.write("touch a session", |step| {
            let sql = "UPDATE sessions SET expires_ms = min(?2, ends_ms) WHERE token_sha256 = ?1 AND expires_ms > ?3
                       RETURNING created_ms, ends_ms";
            let session = step
                .sql(sql)?
                .query_row(params![token_sha256, after(step.now, idle), step.now], |row| {
                    Ok(Session { created_at: time(row.get(0)?), ends_at: time(row.get(1)?) })
                })
                .optional()?;
            Ok(session)
        })
    }

    fn close(&self, token_sha256: &str) -> KvResult<()> {
        self.db.write("close a session", |step| {
            step.run("DELETE FROM sessions WHERE token_sha256 = ?1", [token_sha256])?;
            Ok(())
        })
    }
}

impl LoginThrottle for SqliteKv {
    fn admit(&self, client: &LoginScopes) -> KvResult<Admission> {
        self.db.write("admit a login", |step| {
            step.delete_expired("logins", "address")?;
            let is_known = failures(step, &known(client))?.is_some();
            let scopes: Vec<&LoginScope> = client.iter().take(if is_known { 1 } else { usize::MAX }).collect();
            let mut counts = Vec::with_capacity(scopes.len());
            let mut waits_until = step.now;
            for scope in &scopes {
                let (count, until) = failures(step, &scope.name)?.unwrap_or_default();
                waits_until = waits_until.max(until);
                counts.push(count.saturating_add(1));
            }
            if waits_until > step.now {
                return Ok(Admission::Wait(Duration::from_millis(waits_until.abs_diff(step.now))));
            }
            let expires = after(step.now, Duration::from_secs(LOGIN_MEMORY_S));
            for (scope, count) in scopes.into_iter().zip(counts) {
                let waits_until = scope.rule.wait(count).map_or(step.now, |wait| after(step.now, wait));
                set(step, &scope.name, count, waits_until, expires)?;
            }
            Ok(Admission::Allowed)
        })
    }

    fn record_success(&self, client: &LoginScopes) -> KvResult<()> {
        self.db.write("record a login", |step| {
            step.run("DELETE FROM logins WHERE address = ?1", [&client.address.name])?;
            let known = known(client);
            if failures(step, &known)?.is_none() {
                for scope in &client.wider {
                    // Undoes the failure that the admission counted, and its wait.
                    step.run(
                        "UPDATE logins SET failures = failures - 1, waits_until_ms = 0 WHERE address = ?1 AND failures > 0",
                        [&scope.name],
                    )?;
                }
            }
            set(step, &known, 0, step.now, after(step.now, Duration::from_secs(KNOWN_LOGIN_S)))
        })
    }
}

/// Name of the row for an address with a recent login; it has no failures.
fn known(client: &LoginScopes) -> String {
    format!("known:{}", client.address.name)
}

/// Failures of a scope, and the end of its wait; `None` if it has none.
fn failures(step: &KvTransaction<'_>, scope: &str) -> StepResult<Option<(u32, i64)>> {
    let sql = "SELECT failures, waits_until_ms FROM logins WHERE address = ?1 AND expires_ms > ?2";
    let row = step.sql(sql)?.query_row(params![scope, step.now], |row| Ok((row.get(0)?, row.get(1)?)));
    Ok(row.optional()?)
}

fn set(step: &KvTransaction<'_>, scope: &str, failures: u32, waits_until: i64, expires: i64) -> StepResult<()> {
    step.run(
        "INSERT OR REPLACE INTO logins (address, failures, waits_until_ms, expires_ms) VALUES (?1, ?2, ?3, ?4)",
        params![scope, failures, waits_until, expires],
    )?;
    Ok(())
}
