-- Version 5: notifications, and the state of the conditions that they are about.

-- `due_ms` is null once nothing is pending; `token` is that of the last claim.
CREATE TABLE notifications (
    id TEXT PRIMARY KEY,
    body TEXT NOT NULL,
    deliveries TEXT,
    token TEXT,
    due_ms INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX notifications_by_due ON notifications (due_ms) WHERE due_ms IS NOT NULL;

CREATE TABLE incidents (
    key TEXT PRIMARY KEY,
    state TEXT NOT NULL,
    expires_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX incidents_by_expiry ON incidents (expires_ms);

-- At most one row.
CREATE TABLE notification_targets (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    names TEXT NOT NULL,
    expires_ms INTEGER NOT NULL
) STRICT;
