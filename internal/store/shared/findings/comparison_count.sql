-- Stores what a comparison has counted, with the findings that had no room.
{{template "begin.sql" . -}}
UPDATE {{.Prefix}}comparison
SET counts = @counts
WHERE sys_name = @sys_name AND comparison_id = @id;
