-- Deletes a finding that is no longer true, or a suspect that was none.
{{template "begin.sql" . -}}
DELETE FROM {{.Prefix}}finding
WHERE sys_name = @sys_name AND class = @class AND detail_id = @line AND document_key = {{.OneHash "key"}};
