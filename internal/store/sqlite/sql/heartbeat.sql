-- Guarantees: the number of the environment ?1 becomes the greatest of three: its own plus 1, the milliseconds
-- since 1970, and ?2 plus 1. Without ?4 an existing row stays as it is. A new row gets a new id; with ?3 = 1 an
-- existing row gets one too. The answer is the row.
INSERT INTO sqlwriter_heartbeat (sys_name, database_id, number, raised_at)
VALUES (
    ?1, lower(hex(randomblob(16))), max(?2 + 1, CAST(unixepoch('subsec') * 1000 AS INTEGER)), strftime('%Y-%m-%dT%H:%M:%fZ', 'now')
)
ON CONFLICT (sys_name) DO UPDATE SET
    number = iif(?4, max(number + 1, excluded.number), number),
    database_id = iif(?3, excluded.database_id, database_id),
    raised_at = excluded.raised_at
RETURNING database_id, number;
