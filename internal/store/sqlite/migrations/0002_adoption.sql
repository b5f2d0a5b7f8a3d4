-- The state of the adoption of a database with history (internal/adopt), in at most one row. counts has the counts of
-- the run as JSON; known, adopted and marked are counted here. A ledger from a build without adoption needs no row.
CREATE TABLE sqlwriter_adoption (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    phase TEXT NOT NULL CHECK (phase IN ('running', 'done', 'empty')),
    run_id TEXT NOT NULL,
    watermark INTEGER NOT NULL,
    counts TEXT NOT NULL CHECK (json_valid(counts)),
    known INTEGER NOT NULL DEFAULT 0,
    adopted INTEGER NOT NULL DEFAULT 0,
    marked INTEGER NOT NULL DEFAULT 0,
    who TEXT NOT NULL,
    started_at TEXT NOT NULL,
    finished_at TEXT
);
INSERT INTO sqlwriter_adoption (id, phase, run_id, watermark, counts, who, started_at, finished_at)
SELECT
    1, 'empty', '', 0, '{}', 'migration 0002: the ledger was in use', strftime('%Y-%m-%dT%H:%M:%fZ', 'now'),
    strftime('%Y-%m-%dT%H:%M:%fZ', 'now')
WHERE EXISTS (SELECT 1 FROM sqlwriter_ledger);
