-- Version 8: manual jobs are claimed before automatic ones; runs that comparisons requested.

-- Whether the entry is claimed as one of an automatic job; see the domain's `JobMessage::is_automatic`. Quotes within a value
-- are escaped.
ALTER TABLE stream ADD COLUMN automatic INTEGER NOT NULL DEFAULT 0;
UPDATE stream SET automatic = 1 WHERE instr(fields, '["trigger","auto"]') > 0;
CREATE TRIGGER stream_entry_added AFTER INSERT ON stream WHEN instr(NEW.fields, '["trigger","auto"]') > 0
BEGIN UPDATE stream SET automatic = 1 WHERE id = NEW.id; END;
DROP INDEX stream_new;
CREATE INDEX stream_new ON stream (automatic, id) WHERE consumer IS NULL;

-- The oldest deferred job of a pipeline is due first.
ALTER TABLE jobs DROP COLUMN deferred_ms;

CREATE TABLE run_requests (
    pipeline TEXT PRIMARY KEY,
    due_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX run_requests_by_due ON run_requests (due_ms, pipeline);
