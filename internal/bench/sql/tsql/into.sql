-- The bare write, staged by SELECT INTO.
SET NOCOUNT ON;
SET XACT_ABORT ON;
SELECT
    r.detail_id{{range .Values}},
    {{if .PerLine}}r{{else}}i{{end}}.{{.Staged}}{{end}}
INTO #row
FROM {{template "nested.sql" .}};
BEGIN TRANSACTION;
{{template "three.sql" .}}
COMMIT TRANSACTION;
