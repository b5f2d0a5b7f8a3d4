-- The bare write: the documents into a temp table of one row per line, then the three statements. Nothing is checked, and
-- nothing is kept beside the user's tables.
SET NOCOUNT ON;
SET XACT_ABORT ON;
CREATE TABLE #row (
    detail_id bigint NOT NULL PRIMARY KEY{{range .Values}},
    {{.Staged}} {{.Type}} NULL{{end}}
);
INSERT INTO #row (
    detail_id{{range .Values}},
    {{.Staged}}{{end}}
)
SELECT
    r.detail_id{{range .Values}},
    {{if .PerLine}}r{{else}}i{{end}}.{{.Staged}}{{end}}
FROM {{template "nested.sql" .}}
ORDER BY r.detail_id;
BEGIN TRANSACTION;
{{template "three.sql" .}}
COMMIT TRANSACTION;
