-- What a comparison of SQL with the documents found (internal/reconcile): one row for each finding, kept when it is
-- gone. detail_id is 0 for a finding without a line. document_key is the SHA-256 of document_id, also of the empty one.
-- row_hash identifies the line's rows as the run saw them, and accepted_hash as a person accepted them.
-- All times are UTC by the database's clock.
-- Classes, states and ways to mend are not checked, because a later build may have more.
CREATE TABLE sqlwriter_finding (
    sys_name TEXT NOT NULL,
    class TEXT NOT NULL,
    detail_id INTEGER NOT NULL,
    document_key TEXT NOT NULL CHECK (length(document_key) = 64),
    document_id TEXT NOT NULL,
    state TEXT NOT NULL,
    first_seen TEXT NOT NULL,
    last_seen TEXT NOT NULL,
    run_id TEXT NOT NULL,
    row_hash TEXT NOT NULL,
    detail TEXT NOT NULL,
    mend TEXT NOT NULL,
    queued_by TEXT,
    accepted_hash TEXT,
    accepted_by TEXT,
    why TEXT,
    PRIMARY KEY (sys_name, class, detail_id, document_key)
) WITHOUT ROWID;
-- Findings are counted and listed by state, and those that are gone stay in the table.
CREATE INDEX sqlwriter_ix_finding_state
ON sqlwriter_finding (sys_name, state, class, detail_id, document_key, first_seen);
-- The last runs of a kind, which may be few among all.
CREATE INDEX sqlwriter_ix_run_kind ON sqlwriter_run (kind, run_number, sys_name, status);
