//! The stream's entries.

use rusqlite::{OptionalExtension as _, params};

use crate::domain::job::JobMessage;
use crate::ports::jobs::{Entry, EntryId};

use super::db::Step;
use super::error::Outcome;
use super::units::{sql_count, time};

/// The fields of a message as they lie in the file: a JSON array of pairs of texts.
pub(super) fn fields_of(message: &JobMessage) -> String {
    serde_json::Value::from_iter(message.fields().map(|(name, value)| serde_json::json!([name, value]))).to_string()
}

/// Puts an entry of a job with a row at the end of the stream.
pub(super) fn add(step: &Step<'_>, fields: &str) -> Outcome<i64> {
    step.run("INSERT INTO stream (fields, received_ms) VALUES (?1, ?2)", params![fields, step.now])?;
    step.wakes_claims();
    let entry = step.last_id();
    // It has its row already, and need not be adopted if all entries before it were.
    step.run("UPDATE adopted SET entry = ?1 WHERE entry = ?1 - 1", [entry])?;
    Ok(entry)
}

/// Entries that were not looked at for jobs without a row, claimed ones included, in their order.
pub(super) fn after_adopted(step: &Step<'_>, count: usize) -> Outcome<Vec<Entry>> {
    let sql = "SELECT id, fields, received_ms FROM stream WHERE id > (SELECT entry FROM adopted) ORDER BY id LIMIT ?1";
    taken(step, sql, params![sql_count(count)])
}

/// Takes an entry out, pending or not; false if it isn't there.
pub(super) fn remove(step: &Step<'_>, id: i64) -> Outcome<bool> {
    Ok(step.run("DELETE FROM stream WHERE id = ?1", [id])? > 0)
}

/// Entries that nobody has claimed wait in the stream.
pub(super) fn any_new(step: &Step<'_>) -> Outcome<bool> {
    Ok(step.sql("SELECT EXISTS (SELECT 1 FROM stream WHERE consumer IS NULL)")?.query_row([], |row| row.get(0))?)
}

/// Hands new entries to a consumer, the oldest first.
pub(super) fn claim(step: &Step<'_>, consumer: &str, count: usize) -> Outcome<Vec<Entry>> {
    let sql = "UPDATE stream SET consumer = ?1, seen_ms = ?2, deliveries = deliveries + 1
               WHERE id IN (SELECT id FROM stream WHERE consumer IS NULL ORDER BY id LIMIT ?3)
               RETURNING id, fields, received_ms";
    taken(step, sql, params![consumer, step.now, sql_count(count)])
}

/// Hands entries that showed no life since `before` to a consumer, the longest dead first.
pub(super) fn reclaim(step: &Step<'_>, consumer: &str, count: usize, before: i64) -> Outcome<Vec<Entry>> {
    let sql = "UPDATE stream SET consumer = ?1, seen_ms = ?2, deliveries = deliveries + 1
               WHERE id IN (SELECT id FROM stream WHERE consumer IS NOT NULL AND seen_ms <= ?4
                            ORDER BY seen_ms, id LIMIT ?3)
               RETURNING id, fields, received_ms";
    taken(step, sql, params![consumer, step.now, sql_count(count), before])
}

fn taken(step: &Step<'_>, sql: &str, params: impl rusqlite::Params) -> Outcome<Vec<Entry>> {
    let mut statement = step.sql(sql)?;
    let rows = statement.query_map(params, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let mut rows: Vec<(i64, String, i64)> = rows.collect::<Result<_, _>>()?;
    rows.sort_unstable_by_key(|(id, ..)| *id);
    let entry = |(id, fields, received): (i64, String, i64)| Entry {
        id: EntryId(id.to_string()),
        // What can't be read has no fields: it is buried as an entry without a job id is.
        fields: serde_json::from_str(&fields).unwrap_or_default(),
        received_at: time(received),
    };
    Ok(rows.into_iter().map(entry).collect())
}

/// The entry's number, if it is pending for the consumer.
pub(super) fn pending_for(step: &Step<'_>, entry: &EntryId, consumer: &str) -> Outcome<Option<i64>> {
    let Some(id) = number(entry) else { return Ok(None) };
    let sql = "SELECT id FROM stream WHERE id = ?1 AND consumer = ?2";
    Ok(step.sql(sql)?.query_row(params![id, consumer], |row| row.get(0)).optional()?)
}

/// The entry is alive and the consumer's; nothing happens if it is gone.
pub(super) fn show_life(step: &Step<'_>, entry: &EntryId, consumer: &str) -> Outcome<()> {
    let sql = "UPDATE stream SET consumer = ?2, seen_ms = ?3 WHERE id = ?1";
    step.run(sql, params![number(entry), consumer, step.now])?;
    Ok(())
}

/// `None` for what is no id of ours.
pub(super) fn number(entry: &EntryId) -> Option<i64> {
    entry.0.parse().ok()
}
