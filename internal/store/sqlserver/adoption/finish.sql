-- Guarantees: the run @run ends at its watermark @from, with the counts of the ledger. The answer is the number
-- of changed rows: 1, or 0 if the watermark is another.
SET NOCOUNT ON;
SET LOCK_TIMEOUT 5000;
UPDATE a
SET
    phase = 'done',
    finished_at = SYSUTCDATETIME(),
    adopted = (
        SELECT COUNT(*) FROM sqlwriter.ledger AS l
        WHERE l.write_id = CAST(@run AS uniqueidentifier) AND l.outcome = 'adopted'
    ),
    marked = (
        SELECT COUNT(*) FROM sqlwriter.ledger AS l
        WHERE l.write_id = CAST(@run AS uniqueidentifier) AND l.outcome = 'failed'
    )
FROM sqlwriter.adoption AS a
WHERE a.id = 1 AND a.phase = 'running' AND a.run_id = @run AND a.watermark = @from;
SELECT @@ROWCOUNT AS changed;
