-- The heartbeat: one row for each environment. Its number is raised and committed to see that the database takes writes.
-- database_id is made with the row, so that another database can be told from this one. raised_at is by the database's
-- clock, UTC.
CREATE TABLE sqlwriter_heartbeat (
    sys_name TEXT NOT NULL PRIMARY KEY,
    database_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    raised_at TEXT NOT NULL
);
