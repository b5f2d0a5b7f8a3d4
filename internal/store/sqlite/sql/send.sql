-- Guarantees: the request has a new write id from the database. A request that is sent twice is two writes.
-- ?1 is the environment.
INSERT OR REPLACE INTO {{.Send}} (one, sys_name, write_id, sent_at)
VALUES (1, ?1, lower(hex(randomblob(16))), strftime('%Y-%m-%dT%H:%M:%fZ', 'now'));
