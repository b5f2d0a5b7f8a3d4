-- Guarantees: the one row with the state of the adoption, if there is one.
SELECT
    a.phase, a.run_id, a.watermark, a.counts, a.adopted, a.marked, a.who, a.started_at, a.finished_at
FROM sqlwriter.adoption AS a
WHERE a.id = 1;
