-- Guarantees: the one row with the state of the adoption, if there is one.
SELECT phase, run_id, watermark, counts, adopted, marked, who, started_at, finished_at
FROM sqlwriter_adoption
WHERE id = 1;
