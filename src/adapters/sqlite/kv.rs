//! The handle of a store.

use parking_lot::Mutex;

use crate::domain::job::ClaimOrder;
use crate::ports::kv::KvResult;

use super::db::{Db, SqliteOptions};

/// All ports of the key-value store on one SQLite file. One handle serves all threads of a process.
pub struct SqliteKv {
    pub(super) db: Db,
    pub(super) order: Mutex<ClaimOrder>,
}

impl SqliteKv {
    /// Opens or creates the file.
    ///
    /// # Errors
    /// `Refused` if the file is on a network file system, not writable or of a newer version; `Malformed` if it is not an
    /// intact file of this program; `Unavailable` if it can't be opened or stays locked.
    pub fn open(options: SqliteOptions) -> KvResult<Self> {
        let db = Db::new(options);
        db.read("open", |_| Ok(()))?;
        Ok(Self { db, order: Mutex::default() })
    }
}
