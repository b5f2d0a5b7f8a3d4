-- Stores a step of a comparison, for whoever read the number of the step before. What it named is not needed any more
-- when it has ended.
{{template "begin.sql" . -}}
UPDATE {{.Prefix}}comparison
SET
    step = step + 1, position = @position, error = NULLIF(@error, ''), moved_at = {{.Now}},
    ended_at = CASE WHEN @ended = 1 THEN {{.Now}} END,
    request = CASE WHEN @ended = 1 THEN '{}' ELSE request END
WHERE sys_name = @sys_name AND comparison_id = @id AND step = @step AND ended_at IS NULL;
