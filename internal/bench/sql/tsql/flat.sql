-- The bare write, staged from one array per line: the values of a document stand there once for each of its lines.
SET NOCOUNT ON;
SET XACT_ABORT ON;
SELECT
    r.detail_id{{range .Values}},
    r.{{.Staged}}{{end}}
INTO #row
FROM {{template "lines.sql" .}} AS r;
BEGIN TRANSACTION;
{{template "three.sql" .}}
COMMIT TRANSACTION;
