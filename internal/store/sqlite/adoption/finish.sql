-- Guarantees: the run ?1 ends at its watermark ?2, with the counts of the ledger.
UPDATE sqlwriter_adoption
SET
    phase = 'done',
    finished_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now'),
    adopted = (SELECT count(*) FROM sqlwriter_ledger AS l WHERE l.write_id = ?1 AND l.outcome = 'adopted'),
    marked = (SELECT count(*) FROM sqlwriter_ledger AS l WHERE l.write_id = ?1 AND l.outcome = 'failed')
WHERE id = 1 AND phase = 'running' AND run_id = ?1 AND watermark = ?2;
