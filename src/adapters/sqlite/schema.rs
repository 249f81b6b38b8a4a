//! The schema and its migrations.
//!
//! Invariant: `user_version` counts the applied migrations; a file with more than this program knows is rejected, since
//! writing it could break its rules.

use rusqlite::{Connection, TransactionBehavior};

use super::error::{StepError, StepResult};

/// From version n to n + 1.
pub(super) const MIGRATIONS: &[&str] = &[
    include_str!("schema.sql"),
    include_str!("schema_2.sql"),
    include_str!("schema_3.sql"),
    include_str!("schema_4.sql"),
    include_str!("schema_5.sql"),
    include_str!("schema_6.sql"),
    include_str!("schema_7.sql"),
    include_str!("schema_8.sql"),
];

/// Identifies the file as this program's, in its header: `LKMK`.
pub(super) const APPLICATION_ID: i64 = 0x4c4b_4d4b;

fn pragma(conn: &Connection, name: &str) -> StepResult<i64> {
    Ok(conn.pragma_query_value(None, name, |row| row.get(0))?)
}

/// Migrates the file to the latest version.
pub(super) fn migrate(conn: &mut Connection) -> StepResult<()> {
    let latest = MIGRATIONS.len();
    if found(conn)? == latest {
        return Ok(());
    }
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have migrated it meanwhile.
    for migration in MIGRATIONS.iter().skip(found(&tx)?) {
        tx.execute_batch(migration)?;
    }
    tx.pragma_update(None, "application_id", APPLICATION_ID)?;
    tx.pragma_update(None, "user_version", latest as i64)?;
    Ok(tx.commit()?)
}

/// The version of the file, 0 if it is empty.
fn found(conn: &Connection) -> StepResult<usize> {
    let version = pragma(conn, "user_version")?;
    let owner = pragma(conn, "application_id")?;
    if owner != APPLICATION_ID {
        let objects: i64 = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        if objects > 0 || version != 0 || owner != 0 {
            let found = format!("one with application_id {owner} and user_version {version}");
            return Err(StepError::Malformed { expected: "an SQLite file of this program, or none", found });
        }
    }
    let latest = MIGRATIONS.len();
    match usize::try_from(version) {
        Ok(version) if version <= latest => Ok(version),
        Ok(_) | Err(_) => Err(StepError::Refused(format!(
            "the file has version {version}, this program supports up to {latest}: start the newer program that wrote it"
        ))),
    }
}
