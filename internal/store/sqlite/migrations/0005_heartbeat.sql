-- The heartbeat: one row for each environment. Committing a higher number shows that the database takes writes.
-- database_id is made with the row and tells databases apart. raised_at is UTC by the database's clock.
CREATE TABLE sqlwriter_heartbeat (
    sys_name TEXT NOT NULL PRIMARY KEY,
    database_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    raised_at TEXT NOT NULL
);
