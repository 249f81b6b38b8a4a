//! The connection of a handle, and its transactions.
//!
//! Invariant: a step sees one state and one time, and is atomic. If the file is removed or replaced, the handle reopens the
//! path at once, as if the store had lost its data: it never writes to a file that other processes don't see.

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rusqlite::{CachedStatement, Connection, FileControl, OpenFlags, Transaction, TransactionBehavior};

use crate::ports::kv::KvResult;
use crate::runtime::{Clock, SystemClock, failpoint};
use crate::sync::Monitor;

use super::error::{BUSY_MS_MAX, StepError, StepResult, read_only};
use super::file::{self, FileId};
use super::{clock, schema};

/// Longest pause between two attempts to lock the file, in ms.
const BUSY_PAUSE_MS_MAX: u64 = 5;
/// The write-ahead log is truncated to this size after a checkpoint, in bytes.
const WAL_BYTES_KEPT: i64 = 16 << 20;
/// Prepared statements kept.
const STATEMENTS_KEPT: usize = 128;
/// Expired rows deleted by one write.
const EXPIRED_ROWS_PER_WRITE: usize = 100;

/// The file, and the clock.
#[derive(Clone)]
pub struct SqliteOptions {
    /// Created with mode 0600 if missing, its folder with 0700.
    pub path: PathBuf,
    pub clock: Arc<dyn Clock>,
}

impl SqliteOptions {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), clock: Arc::new(SystemClock) }
    }
}

pub(super) struct Db {
    pub(super) path: PathBuf,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) entries_added: Monitor<u64>,
    opened: Mutex<Option<Opened>>,
    failures: AtomicU64,
}

struct Opened {
    conn: Connection,
    file: FileId,
}

/// A running transaction.
pub(super) struct KvTransaction<'a> {
    tx: Transaction<'a>,
    /// The store's time, in ms.
    pub(super) now: i64,
    /// The wall clock's time, in ms.
    pub(super) wall: i64,
    wakes_claims: Cell<bool>,
}

impl KvTransaction<'_> {
    pub(super) fn sql(&self, text: &str) -> StepResult<CachedStatement<'_>> {
        Ok(self.tx.prepare_cached(text)?)
    }

    /// Runs a statement; returns the number of changed rows.
    pub(super) fn run(&self, text: &str, params: impl rusqlite::Params) -> StepResult<usize> {
        Ok(self.sql(text)?.execute(params)?)
    }

    /// Deletes some expired rows of a table with a column `expires_ms`; called by every insert into it.
    pub(super) fn delete_expired(&self, table: &str, key: &str) -> StepResult<()> {
        let sql = format!(
            "DELETE FROM {table} WHERE ({key}) IN
                 (SELECT {key} FROM {table} WHERE expires_ms <= ?1 ORDER BY expires_ms LIMIT {EXPIRED_ROWS_PER_WRITE})"
        );
        self.run(&sql, [self.now])?;
        Ok(())
    }

    pub(super) fn last_id(&self) -> i64 {
        self.tx.last_insert_rowid()
    }

    /// Wakes waiting claims after the commit.
    pub(super) fn wake_claims(&self) {
        self.wakes_claims.set(true);
    }
}

impl Db {
    pub(super) fn new(options: SqliteOptions) -> Self {
        let SqliteOptions { path, clock } = options;
        Self { path, clock, entries_added: Monitor::default(), opened: Mutex::new(None), failures: AtomicU64::new(0) }
    }

    /// Runs a step that writes.
    pub(super) fn write<T>(
        &self,
        operation: &'static str,
        step: impl FnOnce(&KvTransaction<'_>) -> StepResult<T>,
    ) -> KvResult<T> {
        let transact = || self.transact(operation, TransactionBehavior::Immediate, step);
        let (value, wakes_claims) = failpoint::without_failpoints(transact)?;
        if wakes_claims {
            self.entries_added.update(|count| *count += 1);
        }
        Ok(value)
    }

    /// Runs a step that only reads: it never waits for another process.
    pub(super) fn read<T>(
        &self,
        operation: &'static str,
        step: impl FnOnce(&KvTransaction<'_>) -> StepResult<T>,
    ) -> KvResult<T> {
        Ok(self.transact(operation, TransactionBehavior::Deferred, step)?.0)
    }

    /// Failed steps.
    pub(super) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    fn transact<T>(
        &self,
        operation: &'static str,
        behavior: TransactionBehavior,
        step: impl FnOnce(&KvTransaction<'_>) -> StepResult<T>,
    ) -> KvResult<(T, bool)> {
        let mut slot = self.opened.lock();
        let outcome = self.connection(&mut slot).and_then(|conn| {
            let writes = matches!(behavior, TransactionBehavior::Immediate);
            let tx = conn.transaction_with_behavior(behavior)?;
            let now = clock::now(&tx, &*self.clock, writes)?;
            let step_ =
                KvTransaction { tx, now, wall: self.clock.now().timestamp_millis(), wakes_claims: Cell::new(false) };
            let value = step(&step_)?;
            let KvTransaction { tx, wakes_claims, .. } = step_;
            tx.commit()?;
            Ok((value, wakes_claims.get()))
        });
        outcome.map_err(|fault| {
            self.failures.fetch_add(1, Ordering::Relaxed);
            if fault.breaks_connection() {
                *slot = None;
            }
            fault.into_kv_error(operation, &self.path)
        })
    }

    fn connection<'a>(&self, slot: &'a mut Option<Opened>) -> StepResult<&'a mut Connection> {
        if slot.as_ref().is_some_and(|opened| Some(opened.file) != file::id(&self.path)) {
            *slot = None;
        }
        match slot {
            Some(opened) => Ok(&mut opened.conn),
            None => Ok(&mut slot.insert(self.open()?).conn),
        }
    }

    fn open(&self) -> StepResult<Opened> {
        file::prepare(&self.path)?;
        // The opened file is the one that has this identity before and after.
        let before = file::id(&self.path);
        let mut conn = connect(self, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        let file = file::id(&self.path).filter(|file| before == Some(*file));
        let file = file.ok_or_else(|| std::io::Error::other("the file was replaced while it was being opened"))?;
        if conn.is_readonly("main")? {
            return Err(StepError::Refused(read_only(&self.path.display().to_string())));
        }
        // The last connection must not delete the log: by then the path may belong to another file.
        conn.file_control(None::<&str>, FileControl::PersistWal(&mut 1))?;
        conn.pragma_update(None, "synchronous", "FULL")?;
        conn.pragma_update(None, "foreign_keys", true)?;
        conn.pragma_update(None, "trusted_schema", false)?;
        conn.pragma_update(None, "temp_store", "MEMORY")?;
        schema::migrate(&mut conn)?;
        enable_wal(&conn)?;
        conn.query_row(&format!("PRAGMA journal_size_limit = {WAL_BYTES_KEPT}"), [], |_| Ok(()))?;
        conn.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
        Ok(Opened { conn, file })
    }
}

/// Opens a connection with a busy handler, without further settings.
pub(super) fn connect(db: &Db, mode: OpenFlags) -> StepResult<Connection> {
    let flags = mode | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_PRIVATE_CACHE;
    let mut conn = Connection::open_with_flags(&db.path, flags)?;
    conn.busy_handler(Some(wait_for_lock))?;
    Ok(conn)
}

/// Sleeps briefly between two attempts, since SQLite has no lock to wait on; false after [`BUSY_MS_MAX`].
fn wait_for_lock(attempts: i32) -> bool {
    let attempts = u64::from(attempts.unsigned_abs());
    let pause = |attempt: u64| (1 + attempt / 8).min(BUSY_PAUSE_MS_MAX);
    // Pauses reach their maximum after 32 attempts, which take 80 ms.
    let waited = if attempts < 32 { attempts } else { 80 + (attempts - 32) * BUSY_PAUSE_MS_MAX };
    if waited >= BUSY_MS_MAX {
        return false;
    }
    std::thread::sleep(Duration::from_millis(pause(attempts)));
    true
}

/// Enables the write-ahead log, permanently for the file. The busy handler doesn't apply here.
fn enable_wal(conn: &Connection) -> StepResult<()> {
    for attempts in 0.. {
        let mode =
            conn.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0)).map_err(StepError::from);
        match mode {
            Ok(mode) if mode.eq_ignore_ascii_case("wal") => return Ok(()),
            Ok(mode) => {
                return Err(StepError::Refused(format!(
                    "the file system doesn't support a write-ahead log (journal_mode stays `{mode}`): put the file on a \
                     disk of this machine"
                )));
            }
            Err(fault) if fault.is_busy() && wait_for_lock(attempts) => {}
            Err(fault) => return Err(fault),
        }
    }
    Ok(())
}
