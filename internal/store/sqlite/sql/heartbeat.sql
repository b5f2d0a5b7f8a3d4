-- Guarantees: the row of the environment ?1 has a higher number: one more, the milliseconds since 1970, or one more than ?2, whichever
-- is the most; without ?4 it keeps its number. It is made with an id of its own where there was none, and has a new id when ?3 is 1. The
-- answer is the row.
INSERT INTO sqlwriter_heartbeat (sys_name, database_id, number, raised_at)
VALUES (
    ?1, lower(hex(randomblob(16))), max(?2 + 1, CAST(unixepoch('subsec') * 1000 AS INTEGER)), strftime('%Y-%m-%dT%H:%M:%fZ', 'now')
)
ON CONFLICT (sys_name) DO UPDATE SET
    number = iif(?4, max(number + 1, excluded.number), number),
    database_id = iif(?3, excluded.database_id, database_id),
    raised_at = excluded.raised_at
RETURNING database_id, number;
