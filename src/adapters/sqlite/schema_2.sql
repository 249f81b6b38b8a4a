-- Version 2: queries that run. `cancel` is 1 once somebody wishes the end of one.
CREATE TABLE queries (
    pipeline TEXT NOT NULL,
    id TEXT NOT NULL,
    token TEXT NOT NULL,
    cancel INTEGER NOT NULL DEFAULT 0,
    expires_ms INTEGER NOT NULL,
    PRIMARY KEY (pipeline, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX queries_by_expiry ON queries (expires_ms);
