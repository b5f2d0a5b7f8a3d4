-- Guarantees: the run @run ends where it is said to stand (@from), with what the ledger holds of it. The answer is the
-- number of rows changed: 1, or 0 where it does not stand there.
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
