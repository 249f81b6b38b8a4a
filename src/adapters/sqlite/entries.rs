//! The stream's entries.

use rusqlite::{OptionalExtension as _, params};

use crate::domain::job::JobMessage;
use crate::ports::jobs::{Entry, EntryId};

use super::db::KvTransaction;
use super::error::StepResult;
use super::units::{sql_count, time};

/// The fields of a message as stored: a JSON array of pairs.
pub(super) fn encode_fields(message: &JobMessage) -> String {
    serde_json::Value::from_iter(message.fields().map(|(name, value)| serde_json::json!([name, value]))).to_string()
}

/// Appends the entry of a job that has a row.
pub(super) fn add(step: &KvTransaction<'_>, fields: &str) -> StepResult<i64> {
    step.run("INSERT INTO stream (fields, received_ms) VALUES (?1, ?2)", params![fields, step.now])?;
    step.wake_claims();
    let entry = step.last_id();
    // This entry needs no adoption; earlier ones may.
    step.run("UPDATE adopted SET entry = ?1 WHERE entry = ?1 - 1", [entry])?;
    Ok(entry)
}

/// Entries that were not checked for adoption, including claimed ones, in order.
pub(super) fn after_adopted(step: &KvTransaction<'_>, count: usize) -> StepResult<Vec<Entry>> {
    let sql = "SELECT id, fields, received_ms FROM stream WHERE id > (SELECT entry FROM adopted) ORDER BY id LIMIT ?1";
    claimed_entries(step, sql, params![sql_count(count)])
}

/// Deletes an entry, pending or not; false if it doesn't exist.
pub(super) fn remove(step: &KvTransaction<'_>, id: i64) -> StepResult<bool> {
    Ok(step.run("DELETE FROM stream WHERE id = ?1", [id])? > 0)
}

/// The oldest unclaimed entry of manual jobs, or of automatic ones, after another.
pub(super) fn oldest_unclaimed(step: &KvTransaction<'_>, automatic: bool, after: i64) -> StepResult<Option<i64>> {
    let sql = "SELECT id FROM stream WHERE consumer IS NULL AND automatic = ?1 AND id > ?2 ORDER BY id LIMIT 1";
    Ok(step.sql(sql)?.query_row(params![automatic, after], |row| row.get(0)).optional()?)
}

/// Claims an entry for a consumer.
pub(super) fn claim(step: &KvTransaction<'_>, consumer: &str, id: i64) -> StepResult<Vec<Entry>> {
    let sql = "UPDATE stream SET consumer = ?1, seen_ms = ?2, deliveries = deliveries + 1
               WHERE id = ?3 RETURNING id, fields, received_ms";
    claimed_entries(step, sql, params![consumer, step.now, id])
}

/// Claims entries without a heartbeat since `before` for a consumer, the longest idle first.
pub(super) fn reclaim(step: &KvTransaction<'_>, consumer: &str, count: usize, before: i64) -> StepResult<Vec<Entry>> {
    let sql = "UPDATE stream SET consumer = ?1, seen_ms = ?2, deliveries = deliveries + 1
               WHERE id IN (SELECT id FROM stream WHERE consumer IS NOT NULL AND seen_ms <= ?4
                            ORDER BY seen_ms, id LIMIT ?3)
               RETURNING id, fields, received_ms";
    claimed_entries(step, sql, params![consumer, step.now, sql_count(count), before])
}

fn claimed_entries(step: &KvTransaction<'_>, sql: &str, params: impl rusqlite::Params) -> StepResult<Vec<Entry>> {
    let mut statement = step.sql(sql)?;
    let rows = statement.query_map(params, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let mut rows: Vec<(i64, String, i64)> = rows.collect::<Result<_, _>>()?;
    rows.sort_unstable_by_key(|(id, ..)| *id);
    let entry = |(id, fields, received): (i64, String, i64)| Entry {
        id: EntryId(id.to_string()),
        // An unreadable entry has no fields, and becomes a dead letter.
        fields: serde_json::from_str(&fields).unwrap_or_default(),
        received_at: time(received),
    };
    Ok(rows.into_iter().map(entry).collect())
}

/// The entry's number, if it is pending for the consumer.
pub(super) fn pending_for(step: &KvTransaction<'_>, entry: &EntryId, consumer: &str) -> StepResult<Option<i64>> {
    let Some(id) = number(entry) else { return Ok(None) };
    let sql = "SELECT id FROM stream WHERE id = ?1 AND consumer = ?2";
    Ok(step.sql(sql)?.query_row(params![id, consumer], |row| row.get(0)).optional()?)
}

/// Keeps the entry claimed by the consumer, if it exists.
pub(super) fn heartbeat(step: &KvTransaction<'_>, entry: &EntryId, consumer: &str) -> StepResult<()> {
    let sql = "UPDATE stream SET consumer = ?2, seen_ms = ?3 WHERE id = ?1";
    step.run(sql, params![number(entry), consumer, step.now])?;
    Ok(())
}

/// `None` for an id of another form.
pub(super) fn number(entry: &EntryId) -> Option<i64> {
    entry.0.parse().ok()
}
