-- Guarantees: line ?1 of item ?2 has a verdict already, or keeps the status of its rows.
UPDATE {{.Row}}
SET
    verdict = ?3,
    keep_status = ?4
WHERE detail_id = ?1 AND doc = ?2;
