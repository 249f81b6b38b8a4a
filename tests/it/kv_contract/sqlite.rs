//! The contract's backend on an SQLite file.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use rusqlite::Connection;

use lakemill::adapters::sqlite::{SqliteKv, SqliteOptions};
use lakemill::ports::Kv;
use lakemill::runtime::Clock;

use super::{Backend, Fixture};
use crate::support::moved_clock::MovedClock;

pub struct SqliteBackend {
    path: PathBuf,
    _folder: Option<tempfile::TempDir>,
    pub clock: Arc<MovedClock>,
}

impl SqliteBackend {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { path: folder.path().join("state/kv.db"), _folder: Some(folder), clock: Arc::default() }
    }

    /// On a file in the caller's folder.
    pub fn at(path: &Path) -> Self {
        Self { path: path.to_owned(), _folder: None, clock: Arc::default() }
    }

    pub fn path(&self) -> PathBuf {
        self.path.clone()
    }

    pub fn sqlite(&self) -> SqliteKv {
        SqliteKv::open(SqliteOptions { path: self.path(), clock: self.clock.clone() }).unwrap()
    }

    /// A connection that bypasses the store.
    pub fn raw(&self) -> Connection {
        let conn = Connection::open(self.path()).unwrap();
        conn.pragma_update(None, "foreign_keys", true).unwrap();
        // Not synced: the tables matter here, not durability.
        conn.pragma_update(None, "synchronous", "OFF").unwrap();
        conn
    }
}

impl Backend for SqliteBackend {
    fn open(&self) -> Arc<dyn Kv> {
        Arc::new(self.sqlite())
    }

    fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    fn stop(&self) {
        self.clock.stop();
    }

    fn now(&self) -> DateTime<Utc> {
        self.clock.now()
    }

    fn add_raw(&self, fields: &[(&[u8], &[u8])]) {
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        let pairs: Vec<[String; 2]> = fields.iter().map(|(name, value)| [text(name), text(value)]).collect();
        let sql = "INSERT INTO stream (fields, received_ms) VALUES (?1, ?2)";
        let params = (serde_json::to_string(&pairs).unwrap(), self.now().timestamp_millis());
        self.raw().execute(sql, params).unwrap();
    }

    fn trim_stream(&self) {
        self.raw().execute("DELETE FROM stream", []).unwrap();
    }

    fn dead(&self) -> Vec<String> {
        let conn = self.raw();
        let mut statement = conn.prepare("SELECT why || ' ' || fields FROM dead ORDER BY id").unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }

    fn extend_without_keys(&self, pipeline: &str) {
        let now = self.now().timestamp_millis();
        let sql = "INSERT OR REPLACE INTO windows (pipeline, first_ms, due_ms) VALUES (?1, ?2, ?2 + 5000)";
        self.raw().execute(sql, (pipeline, now)).unwrap();
    }

    fn change_sets(&self) -> usize {
        let count = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
        let sets = self.raw().query_row("SELECT count(*) FROM change_sets", [], count).unwrap();
        usize::try_from(sets).unwrap()
    }

    fn lose_data(&self) {
        std::fs::remove_file(self.path()).unwrap();
    }
}

pub fn fixture() -> Fixture {
    Fixture::new(SqliteBackend::new())
}
