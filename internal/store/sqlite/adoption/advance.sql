-- Guarantees: the watermark of the run ?1 moves from ?2 to ?3, with the counts ?4. If the run is not at ?2, no row
-- changes and the caller undoes the page. With ?3 NULL the row is found under the same condition and keeps its values.
UPDATE sqlwriter_adoption
SET
    watermark = coalesce(?3, watermark),
    counts = iif(?3 IS NULL, counts, ?4)
WHERE id = 1 AND phase = 'running' AND run_id = ?1 AND watermark = ?2;
