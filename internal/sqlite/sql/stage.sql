-- Guarantees: the request starts from empty temp tables of its own and has a write id that no earlier send had,
-- made by the database, so that a request sent twice is two writes. Nothing outside temp is touched.
CREATE TEMP TABLE IF NOT EXISTS {{.Item}} (
    doc INTEGER PRIMARY KEY,
    document_id TEXT NOT NULL,
    document_key TEXT NOT NULL,
    version_us INTEGER NOT NULL,
    source_ts INTEGER NOT NULL,
    content_hash TEXT NOT NULL,
    hash_version INTEGER NOT NULL,
    mark INTEGER NOT NULL{{range .ItemColumns}},
    {{.Staged}} TEXT{{end}},
    left_out INTEGER NOT NULL DEFAULT 0
);
CREATE TEMP TABLE IF NOT EXISTS {{.Row}} (
    detail_id INTEGER NOT NULL,
    doc INTEGER NOT NULL,
    position INTEGER NOT NULL,
    row_hash TEXT{{range .LineColumns}},
    {{.Staged}} TEXT{{end}},
    missing INTEGER NOT NULL DEFAULT 0,
    winner INTEGER NOT NULL DEFAULT 0,
    verdict TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (detail_id, doc)
) WITHOUT ROWID;
CREATE TEMP TABLE IF NOT EXISTS {{.Send}} (
    write_id TEXT NOT NULL,
    sent_at TEXT NOT NULL
);
DELETE FROM {{.Item}};
DELETE FROM {{.Row}};
DELETE FROM {{.Send}};
INSERT INTO {{.Send}} (write_id, sent_at)
VALUES (lower(hex(randomblob(16))), strftime('%Y-%m-%dT%H:%M:%fZ', 'now'));
