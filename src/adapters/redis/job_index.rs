//! The index of ended jobs, and pipelines with active ones.

use std::collections::BTreeSet;

use super::connection::Repeat;
use super::error::malformed;
use super::keys::{self, ACTIVE, ENDED, ENDED_OF, FAILED, FAILED_OF, JOB_INDEX, UNINDEXED};
use super::kv::RedisKv;
use super::reply::OperationReply;
use super::scripts::{self, Call};
use crate::domain::job::{JobId, JobPosition};
use crate::domain::limits::ENDED_JOBS_INDEXED_MAX;
use crate::domain::name::Slug;
use crate::ports::job_index::{
    Coverage, EndedFilter, EndedJob, EndedJobs, JobIndex, NEWEST_ENDS_MAX, NewestEnds, UnindexedPipeline,
};
use crate::ports::kv::KvResult;
use crate::ports::schedule::Cursor;

/// Jobs in one reply, and jobs that one script adds or removes.
const ENDED_MAX: usize = 10_000;
const CHANGED_AT_ONCE: usize = 500;

impl JobIndex for RedisKv {
    fn ended(&self, filter: EndedFilter<'_>, before: Option<&JobPosition>, limit: usize) -> KvResult<EndedJobs> {
        let set = match (filter.pipeline, filter.failed_only) {
            (None, false) => ENDED.to_owned(),
            (None, true) => FAILED.to_owned(),
            (Some(pipeline), false) => keys::ended_of(pipeline),
            (Some(pipeline), true) => keys::failed_of(pipeline),
        };
        let newest = before.map_or_else(|| "+".to_owned(), |before| format!("({}", keys::indexed(before)));
        let call = Call::new(&scripts::ENDED, [&set, JOB_INDEX, UNINDEXED]).arg(newest).arg(limit.min(ENDED_MAX));
        let reply = call.arg(filter.pipeline.map_or("", Slug::as_str)).run(&self.pool)?;
        let [remain, since, found] = reply.parts()?;
        let coverage = match (remain.flag()?, since.text()?.is_empty()) {
            (true, _) => Coverage::Incomplete,
            (false, true) => Coverage::All,
            (false, false) => Coverage::Since(since.number()?),
        };
        let jobs = found.list()?.iter().map(|member| parsed(member, filter.pipeline)).collect::<KvResult<_>>()?;
        Ok(EndedJobs { jobs, coverage })
    }

    fn newest_ends(&self, pipelines: &[Slug]) -> KvResult<Vec<NewestEnds>> {
        let mut newest = Vec::with_capacity(pipelines.len());
        for some in pipelines.chunks(CHANGED_AT_ONCE) {
            let call = Call::new(&scripts::NEWEST_ENDS, []).arg(ENDED_OF).arg(FAILED_OF).arg(NEWEST_ENDS_MAX);
            for reply in call.args(some.iter().map(Slug::to_string)).run(&self.pool)?.list()? {
                let [completed, failed] = reply.parts()?;
                newest.push(NewestEnds { completed_ms: time_of(&completed)?, failed_ms: time_of(&failed)? });
            }
        }
        Ok(newest)
    }

    fn active_pipelines(&self, limit: usize) -> KvResult<Vec<Slug>> {
        self.adopt()?;
        let (mut at, mut found) = (Some(Cursor::default()), BTreeSet::new());
        while let Some(from) = at {
            let (keys, next) = self.scan_active("active_pipelines", &from)?;
            // Keys of others are no pipelines.
            found.extend(keys.iter().filter_map(|key| Slug::parse(key.strip_prefix(ACTIVE)?).ok()));
            at = next;
        }
        Ok(found.into_iter().take(limit).collect())
    }

    fn index_ended(&self, jobs: &[EndedJob]) -> KvResult<()> {
        for jobs in jobs.chunks(CHANGED_AT_ONCE) {
            let mut call = Call::new(&scripts::INDEX_ENDED, [ENDED, FAILED, JOB_INDEX])
                .arg(ENDED_OF)
                .arg(FAILED_OF)
                .arg(ENDED_JOBS_INDEXED_MAX);
            for job in jobs {
                call = call.arg(keys::indexed(&job.position)).arg(&job.pipeline).arg(u8::from(job.failed));
            }
            call.run(&self.pool)?;
        }
        Ok(())
    }

    fn forget_ended(&self, pipeline: &Slug, before_ms: i64) -> KvResult<()> {
        loop {
            let call = Call::new(&scripts::FORGET_ENDED, [ENDED, FAILED, JOB_INDEX]).arg(ENDED_OF).arg(FAILED_OF);
            let call = call.arg(pipeline).arg(keys::indexed_at(before_ms)).arg(CHANGED_AT_ONCE);
            if call.run(&self.pool)?.count()? < CHANGED_AT_ONCE as u64 {
                return Ok(());
            }
        }
    }

    fn is_built(&self) -> KvResult<bool> {
        let mut exists = ::redis::cmd("HEXISTS");
        exists.arg(JOB_INDEX).arg("built");
        OperationReply::new("is_built", self.pool.request("is_built", Repeat::Idempotent, &exists)?).flag()
    }

    fn mark_built(&self) -> KvResult<()> {
        let mut set = ::redis::cmd("HSET");
        self.pool.request("mark_built", Repeat::Idempotent, set.arg(JOB_INDEX).arg("built").arg(1))?;
        Ok(())
    }

    fn unindexed(&self, limit: usize) -> KvResult<Vec<UnindexedPipeline>> {
        const OPERATION: &str = "unindexed";
        let last = i64::try_from(limit).unwrap_or(i64::MAX).saturating_sub(1);
        if last < 0 {
            return Ok(Vec::new());
        }
        let mut range = ::redis::cmd("ZRANGE");
        range.arg(UNINDEXED).arg(0).arg(last).arg("WITHSCORES");
        let reply = OperationReply::new(OPERATION, self.pool.request(OPERATION, Repeat::Idempotent, &range)?);
        let items = reply.list()?;
        let pipeline = |pair: &[OperationReply]| {
            let name = pair[0].text()?;
            let slug = Slug::parse(&name).map_err(|_| malformed(OPERATION, "a slug", &name))?;
            Ok(UnindexedPipeline { pipeline: slug, mark: pair[1].count()? })
        };
        items.chunks_exact(2).map(pipeline).collect()
    }

    fn mark_indexed(&self, pipeline: &UnindexedPipeline) -> KvResult<()> {
        let call = Call::new(&scripts::MARK_INDEXED, [UNINDEXED]).arg(&pipeline.pipeline).arg(pipeline.mark);
        call.run(&self.pool)?;
        Ok(())
    }
}

/// The time of a position, in ms; `None` for an empty text.
fn time_of(position: &OperationReply) -> KvResult<Option<i64>> {
    let text = position.text()?;
    if text.is_empty() {
        return Ok(None);
    }
    let hex = text.split(' ').next().unwrap_or_default();
    i64::from_str_radix(hex, 16).map(Some).map_err(|_| position.unexpected("the position of a job"))
}

/// A member of [`ENDED`] or, with its pipeline, of [`keys::ended_of`].
fn parsed(member: &OperationReply, pipeline: Option<&Slug>) -> KvResult<(Slug, JobPosition)> {
    let text = member.text()?;
    let mut words = text.split(' ');
    let at_ms = words.next().and_then(|hex| i64::from_str_radix(hex, 16).ok());
    let job_id = words.next().and_then(|id| JobId::parse(id).ok());
    let named = words.next().and_then(|slug| Slug::parse(slug).ok());
    match (at_ms, job_id, pipeline.cloned().or(named)) {
        (Some(at_ms), Some(job_id), Some(slug)) => Ok((slug, JobPosition { at_ms, job_id })),
        _ => Err(member.unexpected("an ended job")),
    }
}
