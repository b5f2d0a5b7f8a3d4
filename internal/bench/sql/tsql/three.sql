-- The condition that is always true tells planners which take no hints that few rows come from the temp table: without it
-- one of them reads the whole of the user's tables.
UPDATE d
SET{{range $n, $c := .Detail}}{{if $n}},{{end}}
    {{$c.Name}} = s.{{$c.Staged}}{{end}}
FROM #row AS s
INNER JOIN dbo.IVCE_DTL AS d ON d.IVCE_DTL_UID = s.detail_id
WHERE s.detail_id % 1 = 0
OPTION (LOOP JOIN, FORCE ORDER);
UPDATE t
SET{{range $n, $c := .Tracking}}{{if $n}},{{end}}
    {{$c.Name}} = s.{{$c.Staged}}{{end}}
FROM #row AS s
INNER JOIN dbo.IVCE_TRKG_MSTR AS t ON t.IVCE_DTL_UID = s.detail_id
WHERE s.detail_id % 1 = 0
OPTION (LOOP JOIN, FORCE ORDER);
INSERT INTO dbo.IVCE_TRKG_MSTR (
    IVCE_DTL_UID{{range .Tracking}},
    {{.Name}}{{end}}
)
SELECT
    s.detail_id{{range .Tracking}},
    s.{{.Staged}}{{end}}
FROM #row AS s
WHERE s.detail_id % 1 = 0 AND NOT EXISTS (SELECT 1 FROM dbo.IVCE_TRKG_MSTR AS t WHERE t.IVCE_DTL_UID = s.detail_id);
