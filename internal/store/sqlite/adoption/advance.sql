-- Guarantees: the watermark moves from where the page says the run (?1) stands (?2) to ?3, with the counts ?4 and what the
-- page found known (?5); a run that does not stand there is not moved, and the caller undoes the page. Without a new
-- watermark (?3 NULL) nothing changes, and the row is still found only where the run stands.
UPDATE sqlwriter_adoption
SET
    watermark = coalesce(?3, watermark),
    counts = iif(?3 IS NULL, counts, ?4),
    known = iif(?3 IS NULL, known, ?5)
WHERE id = 1 AND phase = 'running' AND run_id = ?1 AND watermark = ?2;
