-- Guarantees: the ledger rows that the request concerns, as they are, in a temp table. A preview runs the statements of
-- a write on this copy, so that what it foretells is decided by the same guards, and writes nothing.
CREATE TEMP TABLE IF NOT EXISTS {{.Ledger}} (
    detail_id INTEGER PRIMARY KEY,
    version_us INTEGER,
    document_key TEXT,
    document_id TEXT,
    source_ts INTEGER,
    content_hash TEXT,
    hash_version INTEGER,
    row_hash TEXT,
    outcome TEXT,
    write_id TEXT,
    applied_at TEXT
);
DELETE FROM {{.Ledger}};
INSERT INTO {{.Ledger}}
SELECT
    l.detail_id, l.version_us, l.document_key, l.document_id, l.source_ts, l.content_hash, l.hash_version, l.row_hash,
    l.outcome, l.write_id, l.applied_at
FROM (SELECT DISTINCT r.detail_id FROM {{.Row}} AS r) AS d CROSS JOIN main.sqlwriter_ledger AS l
WHERE l.detail_id = d.detail_id;
