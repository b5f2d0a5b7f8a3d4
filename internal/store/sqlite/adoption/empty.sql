-- Guarantees: a database without a state is recorded as one without history; nothing else changes. ?1 is the
-- caller's name.
INSERT INTO sqlwriter_adoption (id, phase, run_id, watermark, counts, who, started_at, finished_at)
VALUES (
    1, 'empty', '', 0, '{}', ?1, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), strftime('%Y-%m-%dT%H:%M:%fZ', 'now')
)
ON CONFLICT (id) DO NOTHING;
