//! The connection of a handle, and transactions on it.
//!
//! Invariant: a step sees one state of the store and one time, and its writes take place together or not at all. A file
//! that was removed or replaced under the handle is left at once: the handle goes on with what stands there now, as if
//! the store had lost its data, and never writes into a file that nobody else sees.

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

use super::error::{BUSY_MS_MAX, Fault, Outcome, read_only};
use super::file::{self, FileId};
use super::{clock, schema};

/// Longest pause between two looks at a file that is locked, in ms.
const BUSY_PAUSE_MS_MAX: u64 = 5;
/// The log is cut to this size after it was carried over into the file, in bytes.
const WAL_BYTES_KEPT: i64 = 16 << 20;
/// Prepared statements kept.
const STATEMENTS_KEPT: usize = 128;
/// Expired rows deleted by one write.
const EXPIRED_AT_ONCE: usize = 100;

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

/// A transaction at work.
pub(super) struct Step<'a> {
    tx: Transaction<'a>,
    /// The store's time, in ms.
    pub(super) now: i64,
    /// The wall clock's time, in ms.
    pub(super) wall: i64,
    added: Cell<bool>,
}

impl Step<'_> {
    pub(super) fn sql(&self, text: &str) -> Outcome<CachedStatement<'_>> {
        Ok(self.tx.prepare_cached(text)?)
    }

    /// Runs one statement; how many rows it changed.
    pub(super) fn run(&self, text: &str, params: impl rusqlite::Params) -> Outcome<usize> {
        Ok(self.sql(text)?.execute(params)?)
    }

    /// Deletes some expired rows of a table with a column `expires_ms`. Called by each write to it, so that none piles up.
    pub(super) fn delete_expired(&self, table: &str, key: &str) -> Outcome<()> {
        let sql = format!(
            "DELETE FROM {table} WHERE ({key}) IN
                 (SELECT {key} FROM {table} WHERE expires_ms <= ?1 ORDER BY expires_ms LIMIT {EXPIRED_AT_ONCE})"
        );
        self.run(&sql, [self.now])?;
        Ok(())
    }

    pub(super) fn last_id(&self) -> i64 {
        self.tx.last_insert_rowid()
    }

    /// Claims that wait are to look again once this is committed.
    pub(super) fn wakes_claims(&self) {
        self.added.set(true);
    }
}

impl Db {
    pub(super) fn new(options: SqliteOptions) -> Self {
        let SqliteOptions { path, clock } = options;
        Self { path, clock, entries_added: Monitor::default(), opened: Mutex::new(None), failures: AtomicU64::new(0) }
    }

    /// One step that writes.
    pub(super) fn write<T>(&self, operation: &'static str, step: impl FnOnce(&Step<'_>) -> Outcome<T>) -> KvResult<T> {
        let transact = || self.transact(operation, TransactionBehavior::Immediate, step);
        let (value, added) = failpoint::unstopped(transact)?;
        if added {
            self.entries_added.update(|count| *count += 1);
        }
        Ok(value)
    }

    /// One step that only reads: it waits for no other process.
    pub(super) fn read<T>(&self, operation: &'static str, step: impl FnOnce(&Step<'_>) -> Outcome<T>) -> KvResult<T> {
        Ok(self.transact(operation, TransactionBehavior::Deferred, step)?.0)
    }

    /// Steps that failed.
    pub(super) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    fn transact<T>(
        &self,
        operation: &'static str,
        behavior: TransactionBehavior,
        step: impl FnOnce(&Step<'_>) -> Outcome<T>,
    ) -> KvResult<(T, bool)> {
        let mut slot = self.opened.lock();
        let outcome = self.connection(&mut slot).and_then(|conn| {
            let writes = matches!(behavior, TransactionBehavior::Immediate);
            let tx = conn.transaction_with_behavior(behavior)?;
            let now = clock::now(&tx, &*self.clock, writes)?;
            let step_ = Step { tx, now, wall: self.clock.now().timestamp_millis(), added: Cell::new(false) };
            let value = step(&step_)?;
            let Step { tx, added, .. } = step_;
            tx.commit()?;
            Ok((value, added.get()))
        });
        outcome.map_err(|fault| {
            self.failures.fetch_add(1, Ordering::Relaxed);
            if fault.breaks_the_connection() {
                *slot = None;
            }
            fault.told(operation, &self.path)
        })
    }

    fn connection<'a>(&self, slot: &'a mut Option<Opened>) -> Outcome<&'a mut Connection> {
        if slot.as_ref().is_some_and(|opened| Some(opened.file) != file::id(&self.path)) {
            *slot = None;
        }
        match slot {
            Some(opened) => Ok(&mut opened.conn),
            None => Ok(&mut slot.insert(self.open()?).conn),
        }
    }

    fn open(&self) -> Outcome<Opened> {
        file::prepare(&self.path)?;
        // The same before and after: that is the file which was opened.
        let before = file::id(&self.path);
        let mut conn = connect(self, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        let file = file::id(&self.path).filter(|file| before == Some(*file));
        let file = file.ok_or_else(|| std::io::Error::other("the file was replaced while it was opened"))?;
        if conn.is_readonly("main")? {
            return Err(Fault::Refused(read_only(&self.path.display().to_string())));
        }
        // The last one to leave must not delete the log: by then the path may lead to another file's.
        conn.file_control(None::<&str>, FileControl::PersistWal(&mut 1))?;
        conn.pragma_update(None, "synchronous", "FULL")?;
        conn.pragma_update(None, "foreign_keys", true)?;
        conn.pragma_update(None, "trusted_schema", false)?;
        conn.pragma_update(None, "temp_store", "MEMORY")?;
        schema::migrate(&mut conn)?;
        write_ahead(&conn)?;
        conn.query_row(&format!("PRAGMA journal_size_limit = {WAL_BYTES_KEPT}"), [], |_| Ok(()))?;
        conn.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
        Ok(Opened { conn, file })
    }
}

/// A connection of its own that waits for others as long as it may, not set up further.
pub(super) fn connect(db: &Db, mode: OpenFlags) -> Outcome<Connection> {
    let flags = mode | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_PRIVATE_CACHE;
    let mut conn = Connection::open_with_flags(&db.path, flags)?;
    conn.busy_handler(Some(wait_a_little))?;
    Ok(conn)
}

/// SQLite has no lock to wait at, so there is a short sleep between two looks: short because transactions are.
fn wait_a_little(looks: i32) -> bool {
    let looks = u64::from(looks.unsigned_abs());
    let pause = |look: u64| (1 + look / 8).min(BUSY_PAUSE_MS_MAX);
    // The longer pauses begin after 32 looks, which took 80 ms.
    let waited = if looks < 32 { looks } else { 80 + (looks - 32) * BUSY_PAUSE_MS_MAX };
    if waited >= BUSY_MS_MAX {
        return false;
    }
    std::thread::sleep(Duration::from_millis(pause(looks)));
    true
}

/// Turns the write-ahead log on, which stays on in the file. SQLite doesn't wait for others here.
fn write_ahead(conn: &Connection) -> Outcome<()> {
    for looks in 0.. {
        let mode = conn.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0)).map_err(Fault::from);
        match mode {
            Ok(mode) if mode.eq_ignore_ascii_case("wal") => return Ok(()),
            Ok(mode) => {
                return Err(Fault::Refused(format!(
                    "the file system can't hold a write-ahead log (journal_mode stays `{mode}`): put the file on a \
                     disk of this machine"
                )));
            }
            Err(fault) if fault.is_busy() && wait_a_little(looks) => {}
            Err(fault) => return Err(fault),
        }
    }
    Ok(())
}
