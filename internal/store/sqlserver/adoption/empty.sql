-- Guarantees: a database without a state is recorded as one without history; nothing else changes.
SET NOCOUNT ON;
INSERT INTO sqlwriter.adoption (
    id, phase, run_id, watermark, counts, adopted, marked, who, started_at, finished_at
)
SELECT 1, 'empty', '', 0, N'{}', 0, 0, @who, SYSUTCDATETIME(), SYSUTCDATETIME()
WHERE NOT EXISTS (SELECT 1 FROM sqlwriter.adoption AS a WHERE a.id = 1);
