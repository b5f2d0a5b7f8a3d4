-- Guarantees: the one row that says how far the adoption is, or none.
SELECT phase, run_id, watermark, counts, known, adopted, marked, who, started_at, finished_at
FROM sqlwriter_adoption
WHERE id = 1;
