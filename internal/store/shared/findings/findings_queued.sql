-- Names the run that was started to mend open findings, where none is named. A row of @rows: line, key,
-- class, environment.
{{template "begin.sql" . -}}
{{.Update .Finding "f"}}
SET queued_by = @by
FROM
    {{.List "rows" "listed_line bigint" "listed_key char(64)" "listed_class varchar(40)" "listed_sys nvarchar(256)"}} AS n
{{.JoinTarget .Finding "f"}}WHERE
{{template "listed_target.sql" .}}
    AND f.state = 'open' AND f.queued_by IS NULL{{.ForceOrder}};
