-- The ledger: which document each line was written from, for ever (never purged). It serves idempotency, the guard against
-- older results and lost acknowledgements. The row hashes are of the rows as they were written, and
-- show later edits. A failure mark and an adopted row have none (docs/requirements.md R54).
CREATE TABLE sqlwriter_ledger (
    detail_id INTEGER PRIMARY KEY,
    version_us INTEGER NOT NULL,
    document_key TEXT NOT NULL CHECK (length(document_key) = 64),
    document_id TEXT NOT NULL,
    source_ts INTEGER NOT NULL,
    content_hash TEXT,
    hash_version INTEGER,
    sys_name TEXT NOT NULL,
    detail_row_hash TEXT,
    tracking_row_hash TEXT,
    outcome TEXT NOT NULL CHECK (outcome IN ('applied', 'failed', 'adopted')),
    write_id TEXT NOT NULL,
    applied_at TEXT NOT NULL,
    CHECK ((outcome = 'failed') = (content_hash IS NULL)),
    CHECK ((content_hash IS NULL) = (hash_version IS NULL))
);
