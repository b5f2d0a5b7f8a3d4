-- Keeps the row of a run from others until the transaction ends, and changes nothing: what is read after it stays so.
-- 0 rows when it has not one of these statuses.
{{template "begin.sql" . -}}
UPDATE {{.Run}}
SET epoch = epoch
WHERE run_id = @run AND pattern IS NOT NULL AND status IN ('running', @other);
