-- The actions of operators (audit_log, one entry for each, never changed) and their long actions (run, one row from
-- request to receipt). filter, counts and detail are JSON. heartbeat_at is the time of the run's last sign of life.
-- All times are UTC by the database's clock. Statuses and kinds are not checked, because a later build may have more.
CREATE TABLE sqlwriter_run (
    run_number INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL UNIQUE,
    sys_name TEXT NOT NULL,
    kind TEXT NOT NULL,
    filter TEXT CHECK (json_valid(filter)),
    requested_by TEXT NOT NULL,
    why TEXT NOT NULL,
    status TEXT NOT NULL,
    cancel INTEGER NOT NULL CHECK (cancel IN (0, 1)),
    counts TEXT NOT NULL CHECK (json_valid(counts)),
    started_at TEXT NOT NULL,
    ended_at TEXT,
    heartbeat_at TEXT NOT NULL
);
CREATE TABLE sqlwriter_audit_log (
    audit_id INTEGER PRIMARY KEY,
    done_at TEXT NOT NULL,
    sys_name TEXT NOT NULL,
    action TEXT NOT NULL,
    done_by TEXT NOT NULL,
    why TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail TEXT CHECK (json_valid(detail))
);
