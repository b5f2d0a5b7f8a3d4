-- Guarantees: a database of which nothing was said is said to have no history; nothing else changes. ?1 is who says it.
INSERT INTO sqlwriter_adoption (id, phase, run_id, watermark, counts, who, started_at, finished_at)
VALUES (
    1, 'empty', '', 0, '{}', ?1, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), strftime('%Y-%m-%dT%H:%M:%fZ', 'now')
)
ON CONFLICT (id) DO NOTHING;
