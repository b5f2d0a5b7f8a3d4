-- Guarantees: a new run replaces only the state that was read (phase ?1, run ?2; both empty for none). The
-- database makes its name. ?3 is the caller's name.
INSERT INTO sqlwriter_adoption (id, phase, run_id, watermark, counts, who, started_at)
SELECT 1, 'running', lower(hex(randomblob(16))), 0, '{}', ?3, strftime('%Y-%m-%dT%H:%M:%fZ', 'now')
WHERE
    (SELECT count(*) FROM sqlwriter_adoption) = iif(?1 = '', 0, 1)
ON CONFLICT (id) DO UPDATE SET
    phase = excluded.phase,
    run_id = excluded.run_id,
    watermark = 0,
    counts = '{}',
    adopted = 0,
    marked = 0,
    who = excluded.who,
    started_at = excluded.started_at,
    finished_at = NULL
WHERE sqlwriter_adoption.phase = ?1 AND sqlwriter_adoption.run_id = ?2;
