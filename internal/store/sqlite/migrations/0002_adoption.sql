-- The state of the adoption of a database with history (internal/adopt), in at most one row. counts has the counts of
-- the run as JSON; adopted and marked are counted here.
CREATE TABLE sqlwriter_adoption (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    phase TEXT NOT NULL CHECK (phase IN ('running', 'done', 'empty')),
    run_id TEXT NOT NULL,
    watermark INTEGER NOT NULL,
    counts TEXT NOT NULL CHECK (json_valid(counts)),
    adopted INTEGER NOT NULL DEFAULT 0,
    marked INTEGER NOT NULL DEFAULT 0,
    who TEXT NOT NULL,
    started_at TEXT NOT NULL,
    finished_at TEXT
);
