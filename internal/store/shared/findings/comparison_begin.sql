-- Begins a comparison, unless there is one with its id.
{{template "begin.sql" . -}}
INSERT INTO {{.Prefix}}comparison (
    sys_name, comparison_id, request, named, night, requested_by, why, step, position, counts, begun_at, moved_at
)
SELECT
    @sys_name, @id, @request, @named, @night, @by, @why, 0, '', '{}', {{.Now}}, {{.Now}}
WHERE NOT EXISTS (
    SELECT 1 FROM {{.Prefix}}comparison AS c WHERE c.sys_name = @sys_name AND c.comparison_id = @id
);
