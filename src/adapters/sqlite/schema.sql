-- Version 1. Times are milliseconds since 1970 by the store's clock (`clock.rs`); flags are 0 or 1.

-- The store's clock: `offset_ms` is added to the time since boot; `high_ms` is the latest time that was returned.
CREATE TABLE clock (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    offset_ms INTEGER NOT NULL,
    high_ms INTEGER NOT NULL
) STRICT;
INSERT INTO clock VALUES (1, 0, 0);

-- Has a row once the store is initialized.
CREATE TABLE epoch (one INTEGER PRIMARY KEY CHECK (one = 1)) STRICT;

-- The entries. `consumer` is null until the entry is claimed; then it is pending for that consumer, whose last
-- heartbeat was at `seen_ms`. `fields` is a JSON array of pairs of texts. An id is never used twice.
CREATE TABLE stream (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    fields TEXT NOT NULL,
    received_ms INTEGER NOT NULL,
    consumer TEXT,
    seen_ms INTEGER,
    deliveries INTEGER NOT NULL DEFAULT 0,
    CHECK ((consumer IS NULL) = (seen_ms IS NULL))
) STRICT;
CREATE INDEX stream_new ON stream (id) WHERE consumer IS NULL;
CREATE INDEX stream_pending ON stream (seen_ms) WHERE consumer IS NOT NULL;

-- The active jobs. `fields` are those of a stream entry; `live` is the JSON of the job as it was last shown. A job
-- with `due_ms` waits, any other has its entry in the stream. `running` is the fence of a start whose end wasn't reported.
CREATE TABLE jobs (
    job_id TEXT PRIMARY KEY,
    pipeline TEXT NOT NULL,
    enqueued_ms INTEGER NOT NULL,
    fields TEXT NOT NULL,
    live TEXT NOT NULL,
    entry INTEGER REFERENCES stream (id) ON DELETE SET NULL,
    due_ms INTEGER,
    reason TEXT,
    deferred_ms INTEGER,
    attempts INTEGER NOT NULL DEFAULT 0,
    lost INTEGER NOT NULL DEFAULT 0,
    running INTEGER,
    cancel INTEGER NOT NULL DEFAULT 0,
    publishing INTEGER NOT NULL DEFAULT 0,
    CHECK ((due_ms IS NULL) = (reason IS NULL)),
    CHECK (due_ms IS NULL OR entry IS NULL)
) STRICT, WITHOUT ROWID;
CREATE INDEX jobs_by_pipeline ON jobs (pipeline, enqueued_ms, job_id);
CREATE INDEX jobs_by_due ON jobs (due_ms) WHERE due_ms IS NOT NULL;
CREATE INDEX jobs_by_entry ON jobs (entry) WHERE entry IS NOT NULL;

-- The last that was shown of jobs that ended.
CREATE TABLE ended (
    job_id TEXT PRIMARY KEY,
    pipeline TEXT NOT NULL,
    live TEXT NOT NULL,
    expires_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX ended_by_expiry ON ended (expires_ms);
CREATE INDEX ended_by_pipeline ON ended (pipeline);

-- The locks on pipelines; `job_id` is null if the holder is not a run.
CREATE TABLE locks (
    pipeline TEXT PRIMARY KEY,
    token TEXT NOT NULL,
    job_id TEXT,
    expires_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The last fence of each pipeline; a row is never deleted.
CREATE TABLE fences (pipeline TEXT PRIMARY KEY, last INTEGER NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE windows (
    pipeline TEXT PRIMARY KEY,
    first_ms INTEGER NOT NULL,
    due_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX windows_by_due ON windows (due_ms);

-- Pipelines that were deleted or renamed. `marked_ms` is wall-clock time: it is compared with what enqueuers say.
CREATE TABLE tombstones (
    pipeline TEXT PRIMARY KEY,
    marked_ms INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Entries that no pipeline can own.
CREATE TABLE dead (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    why TEXT NOT NULL,
    fields TEXT NOT NULL,
    received_ms INTEGER NOT NULL,
    buried_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE sessions (
    token_sha256 TEXT PRIMARY KEY,
    created_ms INTEGER NOT NULL,
    ends_ms INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_by_expiry ON sessions (expires_ms);

CREATE TABLE logins (
    address TEXT PRIMARY KEY,
    failures INTEGER NOT NULL,
    waits_until_ms INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX logins_by_expiry ON logins (expires_ms);

CREATE TABLE key_locks (
    name TEXT PRIMARY KEY,
    token TEXT NOT NULL,
    expires_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX key_locks_by_expiry ON key_locks (expires_ms);
