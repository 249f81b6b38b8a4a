//! Pauses of pipelines: a hash of slugs, or `*` for all, to the pause's ms, a space, and its reason.

use ::redis::Cmd;
use chrono::DateTime;

use super::connection::Repeat;
use super::keys::{self, DELAYED, MESSAGE, PAUSES};
use super::kv::RedisKv;
use super::reply::OperationReply;
use super::scripts::{self, Call};
use crate::domain::name::Slug;
use crate::domain::pause::Pause;
use crate::ports::kv::KvResult;
use crate::ports::pauses::{PausesInForce, RunPauses};

const ALL: &str = "*";

impl RedisKv {
    fn request_pauses(&self, operation: &'static str, command: &Cmd) -> KvResult<OperationReply> {
        Ok(OperationReply::new(operation, self.pool.request(operation, Repeat::Idempotent, command)?))
    }
}

impl RunPauses for RedisKv {
    fn pause(&self, pipeline: Option<&Slug>, pause: &Pause) -> KvResult<()> {
        let value = format!("{} {}", pause.since.timestamp_millis(), pause.reason);
        let command = ::redis::cmd("HSET").arg(PAUSES).arg(field(pipeline)).arg(value).to_owned();
        self.request_pauses("pause", &command)?;
        Ok(())
    }

    fn resume(&self, pipeline: Option<&Slug>) -> KvResult<bool> {
        let active = pipeline.map_or_else(|| PAUSES.to_owned(), keys::active);
        let call = Call::new(&scripts::RESUME, [PAUSES, DELAYED, &active]);
        call.arg(self.now()).arg(field(pipeline)).arg(MESSAGE).run(&self.pool)?.flag()
    }

    fn paused(&self, pipeline: Option<&Slug>) -> KvResult<Option<Pause>> {
        let command = ::redis::cmd("HMGET").arg(PAUSES).arg(field(pipeline)).arg(ALL).to_owned();
        let found = self.request_pauses("paused", &command)?.list()?;
        found.iter().find(|value| !value.is_nil()).map(|value| Ok(parsed(&value.text()?))).transpose()
    }

    fn pauses(&self) -> KvResult<PausesInForce> {
        let command = ::redis::cmd("HGETALL").arg(PAUSES).to_owned();
        let reply = self.request_pauses("pauses", &command)?;
        let mut found = PausesInForce::default();
        for pair in reply.list()?.chunks_exact(2) {
            let (name, pause) = (pair[0].text()?, parsed(&pair[1].text()?));
            match Slug::parse(&name) {
                _ if name == ALL => found.all = Some(pause),
                Ok(slug) => found.pipelines.push((slug, pause)),
                // It pauses nothing.
                Err(error) => tracing::warn!(%error, key = PAUSES, "field ignored: it is not the name of a pipeline"),
            }
        }
        found.pipelines.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(found)
    }
}

fn field(pipeline: Option<&Slug>) -> &str {
    pipeline.map_or(ALL, Slug::as_str)
}

/// A value that another program wrote pauses, too.
fn parsed(value: &str) -> Pause {
    let (ms, reason) = value.split_once(' ').unwrap_or((value, ""));
    match ms.parse().ok().and_then(DateTime::from_timestamp_millis) {
        Some(since) => Pause { since, reason: reason.to_owned() },
        None => Pause { since: DateTime::UNIX_EPOCH, reason: value.to_owned() },
    }
}
