-- Guarantees: the request has a new write id from the database. A request that is sent twice is two writes.
INSERT OR REPLACE INTO {{.Send}} (one, write_id, sent_at)
VALUES (1, lower(hex(randomblob(16))), strftime('%Y-%m-%dT%H:%M:%fZ', 'now'));
