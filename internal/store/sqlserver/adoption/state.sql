-- Guarantees: the one row that says how far the adoption is, or none.
SELECT
    a.phase, a.run_id, a.watermark, a.counts, a.known, a.adopted, a.marked, a.who, a.started_at, a.finished_at
FROM sqlwriter.adoption AS a
WHERE a.id = 1;
