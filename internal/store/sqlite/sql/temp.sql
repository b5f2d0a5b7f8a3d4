-- Guarantees: a connection has the temp tables of a request and the copy of the ledger for a preview. The
-- script runs once for a connection, because the prepared statements need the tables.
CREATE TEMP TABLE IF NOT EXISTS {{.Item}} (
    doc INTEGER PRIMARY KEY,
    document_id TEXT NOT NULL,
    document_key BLOB NOT NULL,
    version_us INTEGER NOT NULL,
    source_ts INTEGER NOT NULL,
    content_hash BLOB NOT NULL,
    hash_version INTEGER NOT NULL,
    mark INTEGER NOT NULL,
    leave_since INTEGER NOT NULL{{range .ItemColumns}},
    {{.Staged}} TEXT{{end}},
    left_out INTEGER NOT NULL DEFAULT 0
);
CREATE TEMP TABLE IF NOT EXISTS {{.Row}} (
    detail_id INTEGER NOT NULL,
    doc INTEGER NOT NULL,
    position INTEGER NOT NULL,
    detail_row_hash BLOB,
    tracking_row_hash BLOB{{range .LineColumns}},
    {{.Staged}} TEXT{{end}},
    missing INTEGER NOT NULL DEFAULT 0,
    winner INTEGER NOT NULL DEFAULT 1,
    verdict TEXT NOT NULL DEFAULT 'applied',
    keep_status INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (detail_id, doc)
) WITHOUT ROWID;
CREATE TEMP TABLE IF NOT EXISTS {{.Send}} (
    one INTEGER PRIMARY KEY,
    sys_name TEXT NOT NULL,
    write_id TEXT NOT NULL,
    sent_at TEXT NOT NULL
);
CREATE TEMP TABLE IF NOT EXISTS {{.Copy}} (
    detail_id INTEGER PRIMARY KEY,
    version_us INTEGER,
    document_key BLOB,
    document_id TEXT,
    source_ts INTEGER,
    content_hash BLOB,
    hash_version INTEGER,
    sys_name TEXT,
    detail_row_hash BLOB,
    tracking_row_hash BLOB,
    outcome TEXT,
    write_id TEXT,
    applied_at TEXT
);
