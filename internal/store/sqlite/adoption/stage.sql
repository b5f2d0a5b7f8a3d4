-- Guarantees: the page starts with an empty temp table.
CREATE TEMP TABLE IF NOT EXISTS sqlwriter_adopt (
    detail_id INTEGER PRIMARY KEY,
    version_us INTEGER NOT NULL,
    document_key BLOB NOT NULL,
    document_id TEXT NOT NULL,
    source_ts INTEGER NOT NULL,
    content_hash BLOB,
    hash_version INTEGER,
    sys_name TEXT NOT NULL,
    outcome TEXT NOT NULL
);
DELETE FROM sqlwriter_adopt;
