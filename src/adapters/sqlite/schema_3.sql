-- Version 3: entries of other programs become jobs, the workers' own setting of attempts, pipelines to be compared.

-- The last entry of the stream that was looked at for jobs without a row.
CREATE TABLE adopted (one INTEGER PRIMARY KEY CHECK (one = 1), entry INTEGER NOT NULL) STRICT;
INSERT INTO adopted VALUES (1, 0);

-- Starts of a job before it has failed; there is a row once a worker said so.
CREATE TABLE attempts (one INTEGER PRIMARY KEY CHECK (one = 1), attempts_max INTEGER NOT NULL) STRICT;

-- `due_ms` is null once a run was enqueued, until another job fails; `over_ms` is the end of the pause that began then.
CREATE TABLE rechecks (
    pipeline TEXT PRIMARY KEY,
    due_ms INTEGER,
    pause_ms INTEGER,
    over_ms INTEGER,
    expires_ms INTEGER NOT NULL,
    CHECK ((pause_ms IS NULL) = (over_ms IS NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX rechecks_by_due ON rechecks (due_ms) WHERE due_ms IS NOT NULL;
CREATE INDEX rechecks_by_expiry ON rechecks (expires_ms);
