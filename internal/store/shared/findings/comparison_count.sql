-- Stores what a comparison has counted, with the findings that had no room.
{{template "begin.sql" . -}}
UPDATE {{.Comparison}}
SET counts = @counts
WHERE sys_name = @sys_name AND comparison_id = @id;
