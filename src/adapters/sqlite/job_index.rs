//! The index of ended jobs, and pipelines with active ones.

use rusqlite::{named_params, params};

use crate::domain::job::{JobId, JobPosition};
use crate::domain::limits::ENDED_JOBS_INDEXED_MAX;
use crate::domain::name::Slug;
use crate::ports::job_index::{
    Coverage, EndedFilter, EndedJob, EndedJobs, JobIndex, NEWEST_ENDS_MAX, NewestEnds, UnindexedPipeline,
};
use crate::ports::kv::KvResult;

use super::db::KvTransaction;
use super::error::{StepError, StepResult};
use super::kv::SqliteKv;
use super::units::{slug, sql_count};

impl JobIndex for SqliteKv {
    fn ended(&self, filter: EndedFilter<'_>, before: Option<&JobPosition>, limit: usize) -> KvResult<EndedJobs> {
        // Each combination has an index of its own.
        let of_pipeline = if filter.pipeline.is_some() { "pipeline = :pipeline" } else { ":pipeline IS NULL" };
        let failed = if filter.failed_only { " AND failed" } else { "" };
        let older =
            if before.is_some() { "(at_ms, job_id) < (:at_ms, :job_id)" } else { ":at_ms = 0 AND :job_id = ''" };
        let sql = format!(
            "SELECT pipeline, at_ms, job_id FROM ended_jobs WHERE {of_pipeline}{failed} AND {older}
             ORDER BY at_ms DESC, job_id DESC, pipeline DESC LIMIT :limit"
        );
        self.db.read("ended jobs", |step| {
            let mut statement = step.sql(&sql)?;
            let params = named_params! {
                ":pipeline": filter.pipeline.map(Slug::as_str),
                ":at_ms": before.map_or(0, |before| before.at_ms),
                ":job_id": before.map_or("", |before| before.job_id.as_str()),
                ":limit": sql_count(limit),
            };
            let rows = statement.query_map(params, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
            let jobs = rows
                .map(|row| {
                    let (pipeline, at_ms, job_id): (String, i64, String) = row?;
                    let job_id = JobId::parse(&job_id)
                        .map_err(|error| StepError::Malformed { expected: "a job id", found: error.found })?;
                    Ok((slug(&pipeline)?, JobPosition { at_ms, job_id }))
                })
                .collect::<StepResult<_>>()?;
            Ok(EndedJobs { jobs, coverage: coverage(step, filter.pipeline)? })
        })
    }

    fn newest_ends(&self, pipelines: &[Slug]) -> KvResult<Vec<NewestEnds>> {
        self.db.read("newest ends", |step| {
            let completed = "SELECT max(at_ms) FROM
                (SELECT at_ms, failed FROM ended_jobs WHERE pipeline = ?1 ORDER BY at_ms DESC LIMIT ?2) WHERE NOT failed";
            let failed = "SELECT max(at_ms) FROM ended_jobs WHERE pipeline = ?1 AND failed";
            let mut newest = Vec::with_capacity(pipelines.len());
            for pipeline in pipelines {
                let pipeline = pipeline.as_str();
                let bounded = params![pipeline, sql_count(NEWEST_ENDS_MAX)];
                newest.push(NewestEnds {
                    completed_ms: step.sql(completed)?.query_row(bounded, |row| row.get(0))?,
                    failed_ms: step.sql(failed)?.query_row([pipeline], |row| row.get(0))?,
                });
            }
            Ok(newest)
        })
    }

    fn active_pipelines(&self, limit: usize) -> KvResult<Vec<Slug>> {
        self.adopt()?;
        self.db.read("active pipelines", |step| {
            let mut statement = step.sql("SELECT DISTINCT pipeline FROM jobs ORDER BY pipeline LIMIT ?1")?;
            let rows = statement.query_map([sql_count(limit)], |row| row.get::<_, String>(0))?;
            rows.map(|name| slug(&name?)).collect()
        })
    }

    fn index_ended(&self, jobs: &[EndedJob]) -> KvResult<()> {
        self.db.write("index ended jobs", |step| {
            jobs.iter().try_for_each(|job| add(step, job))?;
            trim(step)
        })
    }

    fn forget_ended(&self, pipeline: &Slug, before_ms: i64) -> KvResult<()> {
        self.db.write("forget ended jobs", |step| {
            let sql = "DELETE FROM ended_jobs WHERE pipeline = ?1 AND at_ms < ?2";
            step.run(sql, params![pipeline.as_str(), before_ms])?;
            Ok(())
        })
    }

    fn is_built(&self) -> KvResult<bool> {
        self.db.read("is the index built", |step| {
            Ok(step.sql("SELECT built FROM job_index")?.query_row([], |row| row.get(0))?)
        })
    }

    fn mark_built(&self) -> KvResult<()> {
        self.db.write("mark the index as built", |step| {
            step.run("UPDATE job_index SET built = 1", [])?;
            Ok(())
        })
    }

    fn unindexed(&self, limit: usize) -> KvResult<Vec<UnindexedPipeline>> {
        self.db.read("pipelines to index", |step| {
            let mut statement = step.sql("SELECT pipeline, mark FROM unindexed ORDER BY mark LIMIT ?1")?;
            let rows = statement.query_map([sql_count(limit)], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.map(|row| {
                let (pipeline, mark): (String, i64) = row?;
                Ok(UnindexedPipeline { pipeline: slug(&pipeline)?, mark: mark.unsigned_abs() })
            })
            .collect()
        })
    }

    fn mark_indexed(&self, pipeline: &UnindexedPipeline) -> KvResult<()> {
        self.db.write("mark a pipeline as indexed", |step| {
            let mark = i64::try_from(pipeline.mark).unwrap_or(i64::MAX);
            let sql = "DELETE FROM unindexed WHERE pipeline = ?1 AND mark = ?2";
            step.run(sql, params![pipeline.pipeline.as_str(), mark])?;
            Ok(())
        })
    }
}

/// Adds a job that is not there yet.
pub(super) fn add(step: &KvTransaction<'_>, job: &EndedJob) -> StepResult<()> {
    let EndedJob { pipeline, position, failed } = job;
    step.run(
        "INSERT OR IGNORE INTO ended_jobs (pipeline, job_id, at_ms, failed) VALUES (?1, ?2, ?3, ?4)",
        params![pipeline.as_str(), position.job_id.as_str(), position.at_ms.max(0), failed],
    )?;
    Ok(())
}

/// Removes the oldest jobs beyond the maximum.
pub(super) fn trim(step: &KvTransaction<'_>) -> StepResult<()> {
    let jobs: i64 = step.sql("SELECT jobs FROM job_index")?.query_row([], |row| row.get(0))?;
    let over = jobs - sql_count(ENDED_JOBS_INDEXED_MAX);
    if over <= 0 {
        return Ok(());
    }
    let oldest = "SELECT pipeline, job_id, at_ms FROM ended_jobs ORDER BY at_ms, ended_jobs.job_id, pipeline LIMIT ?1";
    let sql = format!(
        "UPDATE job_index
         SET since_ms = max(coalesce(since_ms, 0), (SELECT max(at_ms) + 1 FROM ({oldest})))"
    );
    step.run(&sql, [over])?;
    step.run(
        &format!("DELETE FROM ended_jobs WHERE (pipeline, job_id) IN (SELECT pipeline, job_id FROM ({oldest}))"),
        [over],
    )?;
    Ok(())
}

/// Adds a pipeline to those whose records are to be indexed.
pub(super) fn add_unindexed(step: &KvTransaction<'_>, pipeline: &Slug) -> StepResult<()> {
    step.run("UPDATE job_index SET marks = marks + 1", [])?;
    let sql = "INSERT OR REPLACE INTO unindexed (pipeline, mark) SELECT ?1, marks FROM job_index";
    step.run(sql, [pipeline.as_str()])?;
    Ok(())
}

/// Removes all of a pipeline.
pub(super) fn forget(step: &KvTransaction<'_>, pipeline: &Slug) -> StepResult<()> {
    step.run("DELETE FROM ended_jobs WHERE pipeline = ?1", [pipeline.as_str()])?;
    step.run("DELETE FROM unindexed WHERE pipeline = ?1", [pipeline.as_str()])?;
    Ok(())
}

fn coverage(step: &KvTransaction<'_>, pipeline: Option<&Slug>) -> StepResult<Coverage> {
    let sql = "SELECT NOT built OR EXISTS (SELECT 1 FROM unindexed WHERE ?1 IS NULL OR pipeline = ?1), since_ms
               FROM job_index";
    let (remain, since_ms): (bool, Option<i64>) =
        step.sql(sql)?.query_row([pipeline.map(Slug::as_str)], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(match (remain, since_ms) {
        (true, _) => Coverage::Incomplete,
        (false, None) => Coverage::All,
        (false, Some(since)) => Coverage::Since(since),
    })
}
