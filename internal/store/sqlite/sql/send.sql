-- Guarantees: the request has a write id that no earlier send had, made by the database, so that a request sent twice is two
-- writes.
INSERT OR REPLACE INTO {{.Send}} (one, write_id, sent_at)
VALUES (1, lower(hex(randomblob(16))), strftime('%Y-%m-%dT%H:%M:%fZ', 'now'));
