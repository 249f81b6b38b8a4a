-- Version 4: the keys that the events of a window named, handed to its job.

-- One set for each open window (`job_id` is null), and for each active job whose window had keys; a job without a set looks
-- at all keys. With `is_all`, any key may have changed, and the set has no keys. Without a window: what its next one begins
-- with.
CREATE TABLE change_sets (
    id INTEGER PRIMARY KEY,
    pipeline TEXT NOT NULL,
    job_id TEXT UNIQUE REFERENCES jobs (job_id) ON DELETE CASCADE,
    keys INTEGER NOT NULL DEFAULT 0,
    bytes INTEGER NOT NULL DEFAULT 0,
    is_all INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE UNIQUE INDEX change_sets_of_windows ON change_sets (pipeline) WHERE job_id IS NULL;
CREATE INDEX change_sets_by_pipeline ON change_sets (pipeline);

-- Keys relative to the pipeline's prefix.
CREATE TABLE changed_keys (
    change_set INTEGER NOT NULL REFERENCES change_sets (id) ON DELETE CASCADE,
    key TEXT NOT NULL,
    PRIMARY KEY (change_set, key)
) STRICT, WITHOUT ROWID;
