-- What a comparison of SQL with the documents found (internal/reconcile): one row for each finding. One that is no
-- longer true is deleted. document_key is the SHA-256 of document_id. What a first look saw is a suspect, until a
-- second one sees it with the same mark: then it is sure.
-- All times are UTC by the database's clock. Classes are not checked, because a later build may have more.
CREATE TABLE sqlwriter_finding (
    sys_name TEXT NOT NULL,
    class TEXT NOT NULL,
    detail_id INTEGER NOT NULL,
    document_key TEXT NOT NULL CHECK (length(document_key) = 64),
    document_id TEXT NOT NULL,
    first_seen TEXT NOT NULL,
    last_seen TEXT NOT NULL,
    mark TEXT NOT NULL,
    sure INTEGER NOT NULL,
    detail TEXT NOT NULL,
    mends INTEGER NOT NULL,
    PRIMARY KEY (sys_name, class, detail_id, document_key)
) WITHOUT ROWID;
-- One row for each comparison. request has the documents that it names, as JSON, until it has ended. step counts what
-- was saved: only whoever read it before may save the next one.
CREATE TABLE sqlwriter_comparison (
    sys_name TEXT NOT NULL,
    comparison_id TEXT NOT NULL,
    request TEXT NOT NULL CHECK (json_valid(request)),
    named INTEGER NOT NULL,
    night INTEGER NOT NULL,
    requested_by TEXT NOT NULL,
    why TEXT NOT NULL,
    step INTEGER NOT NULL,
    position TEXT NOT NULL,
    counts TEXT NOT NULL CHECK (json_valid(counts)),
    error TEXT,
    begun_at TEXT NOT NULL,
    moved_at TEXT NOT NULL,
    ended_at TEXT,
    PRIMARY KEY (sys_name, comparison_id)
) WITHOUT ROWID;
-- The first of those that go on, and the last that ended, by their begin.
CREATE INDEX sqlwriter_ix_comparison_begun ON sqlwriter_comparison (sys_name, begun_at, comparison_id);
