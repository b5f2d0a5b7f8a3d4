-- Guarantees: the number of the row of the environment ?1 is one higher, or the row is made with the number 1 and an id
-- of its own. Committed when the statement ends: it is a transaction of its own.
INSERT INTO sqlwriter_heartbeat (sys_name, database_id, number, raised_at)
VALUES (?1, lower(hex(randomblob(16))), 1, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
ON CONFLICT (sys_name) DO UPDATE SET number = number + 1, raised_at = excluded.raised_at;
