-- The bare write without a temp table: each of the three statements reads the request itself.
SET NOCOUNT ON;
SET XACT_ABORT ON;
BEGIN TRANSACTION;
UPDATE d
SET{{range $n, $c := .Detail}}{{if $n}},{{end}}
    {{$c.Name}} = s.{{$c.Staged}}{{end}}
FROM {{template "lines.sql" .}} AS s
INNER JOIN dbo.IVCE_DTL AS d ON d.IVCE_DTL_UID = s.detail_id
OPTION (LOOP JOIN, FORCE ORDER);
UPDATE t
SET{{range $n, $c := .Tracking}}{{if $n}},{{end}}
    {{$c.Name}} = s.{{$c.Staged}}{{end}}
FROM {{template "lines.sql" .}} AS s
INNER JOIN dbo.IVCE_TRKG_MSTR AS t ON t.IVCE_DTL_UID = s.detail_id
OPTION (LOOP JOIN, FORCE ORDER);
INSERT INTO dbo.IVCE_TRKG_MSTR (
    IVCE_DTL_UID{{range .Tracking}},
    {{.Name}}{{end}}
)
SELECT
    s.detail_id{{range .Tracking}},
    s.{{.Staged}}{{end}}
FROM {{template "lines.sql" .}} AS s
WHERE NOT EXISTS (SELECT 1 FROM dbo.IVCE_TRKG_MSTR AS t WHERE t.IVCE_DTL_UID = s.detail_id);
COMMIT TRANSACTION;
