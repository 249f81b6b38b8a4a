//! Claims, reclaims and decodes entries of the stream.

use std::time::Duration;

use ::redis::Cmd;
use chrono::DateTime;

use super::connection::Repeat;
use super::error::group_is_missing;
use super::keys::{ADOPTED, EPOCH, GROUP, STREAM};
use super::kv::RedisKv;
use super::reply::OperationReply;
use super::scripts::{Call, GROUP as CREATE_GROUP, SWEEP};
use crate::ports::jobs::{Entry, EntryId};
use crate::ports::kv::KvResult;

/// Longest wait of a claim.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// Entries per claim or reclaim.
const COUNT_MAX: usize = 1_000;
/// Steps of one reclaim; each scans ten times as many pending entries as it may claim.
const RECLAIM_STEPS_MAX: usize = 100;
/// Pending entries of a consumer that are checked when some turned out to be deleted.
const SWEEP_MAX: usize = 1_000;
/// The cursor at which a scan of pending entries begins and ends.
const START: &str = "0-0";

impl RedisKv {
    pub(super) fn claim_new(&self, consumer: &str, count: usize, wait: Duration) -> KvResult<Vec<Entry>> {
        const OPERATION: &str = "claim";
        let wait = wait.min(WAIT_MAX);
        let mut command = ::redis::cmd("XREADGROUP");
        command.arg("GROUP").arg(GROUP).arg(consumer).arg("COUNT").arg(count.clamp(1, COUNT_MAX));
        // 0 would block without a limit.
        if wait.as_millis() > 0 {
            command.arg("BLOCK").arg(millis(wait));
        }
        command.arg("STREAMS").arg(STREAM).arg(">");
        let reply = match self.pool.try_request(Repeat::Never, &command, wait) {
            Err(error) if group_is_missing(&error) => {
                self.create_group()?;
                self.pool.try_request(Repeat::Never, &command, wait)
            }
            outcome => outcome,
        };
        match reply {
            Ok(value) => first_stream(OperationReply::new(OPERATION, value)),
            // Deleted again: the next claim creates it.
            Err(error) if group_is_missing(&error) => Ok(Vec::new()),
            Err(error) => Err(self.pool.kv_error(OPERATION, &error)),
        }
    }

    pub(super) fn reclaim_idle(&self, consumer: &str, count: usize, idle: Duration) -> KvResult<Vec<Entry>> {
        let (mut entries, mut at, mut gone) = (Vec::new(), START.to_owned(), 0);
        let count = count.clamp(1, COUNT_MAX);
        for _ in 0..RECLAIM_STEPS_MAX {
            let command = autoclaim(consumer, count - entries.len(), idle, &at);
            let reply = match self.pool.try_request(Repeat::Never, &command, Duration::ZERO) {
                Ok(value) => OperationReply::new("reclaim", value),
                // Without a group nothing is pending.
                Err(error) if group_is_missing(&error) => break,
                // Returns the claimed entries, which would otherwise idle for another period.
                Err(error) if !entries.is_empty() => {
                    tracing::warn!(error = %self.pool.kv_error("reclaim", &error), "reclaim stopped early");
                    break;
                }
                Err(error) => return Err(self.pool.kv_error("reclaim", &error)),
            };
            let [next, claimed, deleted] = reply.parts()?;
            gone += deleted.list()?.len();
            for entry in claimed.list()? {
                match self::entry(entry)? {
                    Some(entry) => entries.push(entry),
                    None => gone += 1,
                }
            }
            at = next.text()?;
            if entries.len() >= count || at == START {
                break;
            }
        }
        if gone > 0 {
            self.sweep(consumer)?;
            tracing::warn!(entries = gone, "acknowledged entries that were deleted while claimed");
        }
        Ok(entries)
    }

    pub(super) fn create_group(&self) -> KvResult<()> {
        if Call::new(&CREATE_GROUP, [STREAM, EPOCH, ADOPTED]).arg(GROUP).run(&self.pool)?.flag()? {
            tracing::info!(stream = STREAM, group = GROUP, "stream group created");
        }
        Ok(())
    }

    /// Acknowledges deleted entries, which Redis 6.2 reports without their ids.
    fn sweep(&self, consumer: &str) -> KvResult<()> {
        Call::new(&SWEEP, [STREAM]).arg(GROUP).arg(consumer).arg(SWEEP_MAX).run(&self.pool)?;
        Ok(())
    }
}

fn autoclaim(consumer: &str, count: usize, idle: Duration, from: &str) -> Cmd {
    let mut command = ::redis::cmd("XAUTOCLAIM");
    command.arg(STREAM).arg(GROUP).arg(consumer).arg(millis(idle)).arg(from).arg("COUNT").arg(count);
    command
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).min(i64::MAX as u64)
}

/// `[[stream, entries]]`, or nil after a timeout.
fn first_stream(reply: OperationReply) -> KvResult<Vec<Entry>> {
    let Some(stream) = reply.list()?.into_iter().next() else { return Ok(Vec::new()) };
    let [_name, entries] = stream.parts()?;
    entries.list()?.into_iter().filter_map(|reply| entry(reply).transpose()).collect()
}

/// `[id, [name, value, …]]`; `None` if the content was deleted.
pub(super) fn entry(reply: OperationReply) -> KvResult<Option<Entry>> {
    if reply.is_nil() {
        return Ok(None);
    }
    let [id, fields] = reply.parts()?;
    if fields.is_nil() {
        return Ok(None);
    }
    let text = id.text()?;
    let ms = text.split('-').next().and_then(|ms| ms.parse().ok());
    let received_at = ms.and_then(DateTime::from_timestamp_millis).ok_or_else(|| id.unexpected("an entry's id"))?;
    let mut pairs = Vec::new();
    let mut fields = fields.list()?.into_iter();
    while let (Some(name), Some(value)) = (fields.next(), fields.next()) {
        pairs.push((name.text()?, value.text()?));
    }
    Ok(Some(Entry { id: EntryId(text), fields: pairs, received_at }))
}

#[cfg(test)]
mod tests {
    use ::redis::Value;

    use super::*;

    fn bulk(text: &[u8]) -> Value {
        Value::BulkString(text.to_vec())
    }

    #[test]
    fn entry_keeps_its_fields_in_order_and_accepts_any_bytes() {
        let fields = vec![bulk(b"b"), bulk(b"1"), bulk(b"a\xff"), bulk(b"\x00")];
        let reply = OperationReply::new("test", Value::Array(vec![bulk(b"1700000000123-4"), Value::Array(fields)]));
        let entry = entry(reply).unwrap().unwrap();
        assert_eq!(entry.id, EntryId("1700000000123-4".into()));
        assert_eq!(entry.received_at.timestamp_millis(), 1_700_000_000_123);
        assert_eq!(entry.fields, [("b".into(), "1".into()), ("a\u{fffd}".to_owned(), "\0".to_owned())]);
    }

    #[test]
    fn deleted_entry_is_none_and_invalid_reply_is_malformed() {
        assert_eq!(entry(OperationReply::new("test", Value::Nil)).unwrap(), None);
        let gone = Value::Array(vec![bulk(b"1-0"), Value::Nil]);
        assert_eq!(entry(OperationReply::new("test", gone)).unwrap(), None);
        let odd = Value::Array(vec![bulk(b"x"), Value::Array(vec![])]);
        assert!(entry(OperationReply::new("test", odd)).is_err());
        assert!(first_stream(OperationReply::new("test", Value::Okay)).is_err());
    }
}
