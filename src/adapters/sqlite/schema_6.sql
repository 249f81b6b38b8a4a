-- Version 6: an index of ended jobs.

CREATE TABLE ended_jobs (
    pipeline TEXT NOT NULL,
    job_id TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    PRIMARY KEY (pipeline, job_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX ended_jobs_by_time ON ended_jobs (at_ms, job_id, pipeline);
CREATE INDEX failed_jobs_by_time ON ended_jobs (at_ms, job_id, pipeline) WHERE failed;
CREATE INDEX ended_jobs_of ON ended_jobs (pipeline, at_ms, job_id);
CREATE INDEX failed_jobs_of ON ended_jobs (pipeline, at_ms, job_id) WHERE failed;

-- One row. `since_ms`: null until older jobs were removed; `marks`: the last mark of `unindexed`.
CREATE TABLE job_index (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    built INTEGER NOT NULL,
    jobs INTEGER NOT NULL,
    since_ms INTEGER,
    marks INTEGER NOT NULL
) STRICT;
INSERT INTO job_index VALUES (1, 0, 0, NULL, 0);

CREATE TRIGGER ended_job_added AFTER INSERT ON ended_jobs BEGIN UPDATE job_index SET jobs = jobs + 1; END;
CREATE TRIGGER ended_job_removed AFTER DELETE ON ended_jobs BEGIN UPDATE job_index SET jobs = jobs - 1; END;

-- Pipelines whose records are to be indexed.
CREATE TABLE unindexed (
    pipeline TEXT PRIMARY KEY,
    mark INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
