-- Guarantees: a new run replaces only the state that was read (@phase and @run; both empty for none). The
-- server makes its name. The answer is the number of changed rows: 1, or 0 if the state is another.
SET NOCOUNT ON;
SET LOCK_TIMEOUT 5000;
DECLARE @changed int;
UPDATE a
SET
    phase = 'running',
    run_id = LOWER(CONVERT(varchar(36), NEWID())),
    watermark = 0,
    counts = N'{}',
    adopted = 0,
    marked = 0,
    who = @who,
    started_at = SYSUTCDATETIME(),
    finished_at = NULL
FROM sqlwriter.adoption AS a
WHERE a.id = 1 AND a.phase = @phase AND a.run_id = @run;
SET @changed = @@ROWCOUNT;
IF @phase = ''
    BEGIN
        INSERT INTO sqlwriter.adoption (
            id, phase, run_id, watermark, counts, adopted, marked, who, started_at
        )
        SELECT 1, 'running', LOWER(CONVERT(varchar(36), NEWID())), 0, N'{}', 0, 0, @who, SYSUTCDATETIME()
        WHERE NOT EXISTS (SELECT 1 FROM sqlwriter.adoption AS a WHERE a.id = 1);
        SET @changed = @@ROWCOUNT;
    END;
SELECT @changed AS changed;
