//! Pauses of pipelines.

use rusqlite::{OptionalExtension as _, params};

use crate::domain::job::WaitReason;
use crate::domain::name::Slug;
use crate::domain::pause::Pause;
use crate::ports::kv::KvResult;
use crate::ports::pauses::{PausesInForce, RunPauses};

use super::kv::SqliteKv;
use super::units::{slug, time};

const ALL: &str = "*";

fn name(pipeline: Option<&Slug>) -> &str {
    pipeline.map_or(ALL, Slug::as_str)
}

impl RunPauses for SqliteKv {
    fn pause(&self, pipeline: Option<&Slug>, pause: &Pause) -> KvResult<()> {
        self.db.write("pause", |step| {
            let sql = "INSERT OR REPLACE INTO pauses (pipeline, since_ms, reason) VALUES (?1, ?2, ?3)";
            step.run(sql, params![name(pipeline), pause.since.timestamp_millis(), pause.reason])?;
            Ok(())
        })
    }

    fn resume(&self, pipeline: Option<&Slug>) -> KvResult<bool> {
        self.db.write("resume", |step| {
            if step.run("DELETE FROM pauses WHERE pipeline = ?1", [name(pipeline)])? == 0 {
                return Ok(false);
            }
            let sql = "UPDATE jobs SET due_ms = ?2 WHERE pipeline = ?1 AND reason = ?3 AND due_ms > ?2";
            step.run(sql, params![name(pipeline), step.now, WaitReason::Paused.as_str()])?;
            Ok(true)
        })
    }

    fn paused(&self, pipeline: Option<&Slug>) -> KvResult<Option<Pause>> {
        self.db.read("paused", |step| {
            let sql = "SELECT since_ms, reason FROM pauses WHERE pipeline IN (?1, '*') ORDER BY pipeline DESC LIMIT 1";
            let read = |row: &rusqlite::Row<'_>| Ok(Pause { since: time(row.get(0)?), reason: row.get(1)? });
            Ok(step.sql(sql)?.query_row([name(pipeline)], read).optional()?)
        })
    }

    fn pauses(&self) -> KvResult<PausesInForce> {
        self.db.read("pauses", |step| {
            let mut found = PausesInForce::default();
            let mut statement = step.sql("SELECT pipeline, since_ms, reason FROM pauses ORDER BY pipeline")?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let name: String = row.get(0)?;
                let pause = Pause { since: time(row.get(1)?), reason: row.get(2)? };
                match name == ALL {
                    true => found.all = Some(pause),
                    false => found.pipelines.push((slug(&name)?, pause)),
                }
            }
            Ok(found)
        })
    }
}
