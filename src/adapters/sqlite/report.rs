//! Diagnostics of the store.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use chrono::{DateTime, Utc};
use rusqlite::OpenFlags;

use crate::ports::kv::{Diagnose, KeyLocks as _, KvFinding, KvReport, KvResult};

use super::db::{Db, connect};
use super::error::StepResult;
use super::kv::SqliteKv;

/// Less free space than this is reported, in bytes.
const FREE_BYTES_MIN: u64 = 256 << 20;
/// The lock that a write probe takes, and its TTL.
const PROBE: &str = "probe of writes";
const PROBE_TTL: Duration = Duration::from_secs(60);
/// A larger lag of the wall clock behind the store's time is reported, in ms.
const LAG_MS_MAX: i64 = 60_000;
/// Problems that the integrity check lists.
const CHECK_ROWS_MAX: i64 = 5;

impl Diagnose for SqliteKv {
    fn ping(&self) -> KvResult<()> {
        self.db.read("ping", |_| Ok(()))
    }

    fn probe_write(&self) -> KvResult<()> {
        self.try_lock(PROBE, "probe", PROBE_TTL).map(drop)
    }

    /// The store uses this machine's clock.
    fn time(&self) -> KvResult<Option<DateTime<Utc>>> {
        Ok(None)
    }

    fn failures(&self) -> u64 {
        self.db.failures()
    }

    fn report(&self) -> KvResult<KvReport> {
        let lag = self.db.read("report", |step| Ok(step.now - step.wall))?;
        let mut findings = Vec::new();
        findings.extend(integrity(&self.db).map_err(|fault| fault.into_kv_error("report", &self.db.path))?);
        findings.extend(space(&self.db.path));
        findings.extend(mode(&self.db.path));
        if lag > LAG_MS_MAX {
            findings.push(KvFinding {
                fatal: false,
                problem: format!("the machine's clock is {} s behind the times in the file", lag / 1_000),
                advice: "correct the clock; until then displayed times are in the future".to_owned(),
            });
        }
        Ok(KvReport { server: format!("SQLite {}", rusqlite::version()), findings })
    }
}

/// Uses a separate connection, since the check reads the whole file.
fn integrity(db: &Db) -> StepResult<Option<KvFinding>> {
    let conn = connect(db, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let mut statement = conn.prepare(&format!("PRAGMA quick_check({CHECK_ROWS_MAX})"))?;
    let rows: Vec<String> = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    Ok((rows != ["ok"]).then(|| KvFinding {
        fatal: true,
        problem: format!("the file is damaged: `{}`", rows.join("; ")),
        advice: "stop every process that uses it, move it away with its `-wal` and `-shm` files, and start again with \
                 a new one"
            .to_owned(),
    }))
}

fn space(path: &Path) -> Option<KvFinding> {
    let found = rustix::fs::statvfs(path).ok()?;
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    (free < FREE_BYTES_MIN).then(|| KvFinding {
        fatal: false,
        problem: format!("{} MiB are free on the file's disk, expected {} or more", free >> 20, FREE_BYTES_MIN >> 20),
        advice: "free some space: on a full disk no job can be claimed or finished".to_owned(),
    })
}

fn mode(path: &Path) -> Option<KvFinding> {
    let mode = std::fs::metadata(path).ok()?.permissions().mode() & 0o777;
    (mode & 0o077 != 0).then(|| KvFinding {
        fatal: false,
        problem: format!("the file's mode is {mode:o}, expected 600: other users of the machine may open it"),
        advice: format!("chmod 600 {}", path.display()),
    })
}
