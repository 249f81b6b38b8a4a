//! Claims, reclaims and decodes entries of the stream.
//!
//! An entry is read for the consumer of its kind, and claimed from there, so that a worker can take manual jobs before
//! older automatic ones. A worker without anything to claim waits outside the group, which delivers nothing.

use std::time::{Duration, Instant};

use chrono::DateTime;

use super::connection::Repeat;
use super::error::group_is_missing;
use super::keys::{ADOPTED, DELAYED, EPOCH, GROUP, MESSAGE, RUN_LOCK, STREAM};
use super::kv::RedisKv;
use super::reply::OperationReply;
use super::scripts::{self, Call};
use crate::domain::job::ClaimOrder;
use crate::domain::limits::{DEFER_MARGIN_MS, DEFER_MS_MAX, MANUAL_PREFERRED_MAX};
use crate::ports::jobs::{ClaimLimits, Entry, EntryId};
use crate::ports::kv::KvResult;

/// Longest wait of a claim.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// Entries per claim or reclaim.
const COUNT_MAX: usize = 1_000;
/// New entries that one step of a claim sorts by kind, queued ones that it checks, and steps of a claim.
const READ_MAX: usize = 1_000;
const CHECKED_MAX: usize = 4_000;
const CLAIM_STEPS_MAX: usize = 1_000;
/// Before the first entry.
const START: &str = "0-0";

impl RedisKv {
    pub(super) fn claim_queued(&self, consumer: &str, limits: ClaimLimits, wait: Duration) -> KvResult<Vec<Entry>> {
        let deadline = Instant::now() + wait.min(WAIT_MAX);
        loop {
            // A job without a record can't be deferred before its start.
            self.adopt()?;
            let (entries, last) = self.claim_now(consumer, limits)?;
            let left = deadline.saturating_duration_since(Instant::now());
            // A block of 0 ms would have no limit.
            if !entries.is_empty() || left.as_millis() == 0 || !self.has_entry_after(&last, left)? {
                return Ok(entries);
            }
        }
    }

    /// The claimed entries, and the last entry of the stream.
    fn claim_now(&self, consumer: &str, limits: ClaimLimits) -> KvResult<(Vec<Entry>, String)> {
        for _ in 0..CLAIM_STEPS_MAX {
            let order = *self.order.lock();
            let reply = Call::new(&scripts::CLAIM, [STREAM, DELAYED])
                .arg(self.now())
                .arg(GROUP)
                .arg(consumer)
                .arg(limits.entries.clamp(1, COUNT_MAX))
                .arg(limits.automatic)
                .arg(READ_MAX)
                .arg(CHECKED_MAX)
                .arg(order.preferred())
                .arg(MANUAL_PREFERRED_MAX)
                .arg(MESSAGE)
                .arg(RUN_LOCK)
                .arg(DEFER_MARGIN_MS)
                .arg(DEFER_MS_MAX)
                .run(&self.pool)?;
            let [word, preferred, last_entry, claimed] = reply.parts()?;
            match word.text()?.as_str() {
                "claimed" => {
                    *self.order.lock() = ClaimOrder::after(u32::try_from(preferred.count()?).unwrap_or_default());
                    let claimed = claimed.list()?.into_iter().filter_map(|reply| entry(reply).transpose());
                    return Ok((claimed.collect::<KvResult<_>>()?, last_entry.text()?));
                }
                "more" => {}
                "no_group" => self.create_group()?,
                _ => return Err(word.unexpected("a claim's outcome")),
            }
        }
        // The next claim continues.
        Ok((Vec::new(), START.to_owned()))
    }

    /// Waits for an entry after `last`, without claiming it.
    fn has_entry_after(&self, last: &str, wait: Duration) -> KvResult<bool> {
        const OPERATION: &str = "claim";
        let mut command = ::redis::cmd("XREAD");
        command.arg("COUNT").arg(1).arg("BLOCK").arg(millis(wait)).arg("STREAMS").arg(STREAM).arg(last);
        match self.pool.try_request(Repeat::Idempotent, &command, wait) {
            Ok(value) => Ok(!OperationReply::new(OPERATION, value).is_nil()),
            // The stream was deleted: the next claim creates it.
            Err(error) if group_is_missing(&error) => Ok(false),
            Err(error) => Err(self.pool.kv_error(OPERATION, &error)),
        }
    }

    pub(super) fn reclaim_idle(&self, consumer: &str, count: usize, idle: Duration) -> KvResult<Vec<Entry>> {
        let reply = Call::new(&scripts::RECLAIM, [STREAM])
            .arg(GROUP)
            .arg(consumer)
            .arg(count.clamp(1, COUNT_MAX))
            .arg(millis(idle))
            .arg(CHECKED_MAX)
            .run(&self.pool)?;
        let [gone, claimed] = reply.parts()?;
        let gone = gone.count()?;
        if gone > 0 {
            tracing::warn!(entries = gone, "acknowledged entries that were deleted while claimed");
        }
        claimed.list()?.into_iter().filter_map(|reply| entry(reply).transpose()).collect()
    }

    pub(super) fn create_group(&self) -> KvResult<()> {
        if Call::new(&scripts::GROUP, [STREAM, EPOCH, ADOPTED]).arg(GROUP).run(&self.pool)?.flag()? {
            tracing::info!(stream = STREAM, group = GROUP, "stream group created");
        }
        Ok(())
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).min(i64::MAX as u64)
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
    }
}
