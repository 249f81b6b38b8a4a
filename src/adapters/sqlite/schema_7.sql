-- Version 7: pauses. `pipeline` is `*` for all.

CREATE TABLE pauses (
    pipeline TEXT PRIMARY KEY,
    since_ms INTEGER NOT NULL,
    reason TEXT NOT NULL
) STRICT, WITHOUT ROWID;
