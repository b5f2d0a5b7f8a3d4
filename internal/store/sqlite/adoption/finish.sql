-- Guarantees: the run ?1 ends where it is said to stand (?2), with what the ledger holds of it.
UPDATE sqlwriter_adoption
SET
    phase = 'done',
    finished_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now'),
    adopted = (SELECT count(*) FROM sqlwriter_ledger AS l WHERE l.write_id = ?1 AND l.outcome = 'adopted'),
    marked = (SELECT count(*) FROM sqlwriter_ledger AS l WHERE l.write_id = ?1 AND l.outcome = 'failed')
WHERE id = 1 AND phase = 'running' AND run_id = ?1 AND watermark = ?2;
