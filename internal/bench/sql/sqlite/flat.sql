-- The bare write, staged from one array per line. A line of its own ends each statement.
CREATE TEMP TABLE IF NOT EXISTS bench_row (
    detail_id INTEGER PRIMARY KEY{{range .Values}},
    {{.Staged}}{{end}}
)
;
DELETE FROM bench_row
;
WITH j AS MATERIALIZED (SELECT e.value FROM json_each(?1) AS e)
INSERT INTO bench_row
SELECT
    j.value ->> 0{{range .Values}},
    j.value ->> {{.Flat}}{{end}}
FROM j
;
UPDATE IVCE_DTL AS t
SET{{range $n, $c := .Detail}}{{if $n}},{{end}}
    {{$c.Name}} = s.{{$c.Staged}}{{end}}
FROM bench_row AS s
WHERE t.IVCE_DTL_UID = +s.detail_id
;
UPDATE IVCE_TRKG_MSTR AS t
SET{{range $n, $c := .Tracking}}{{if $n}},{{end}}
    {{$c.Name}} = s.{{$c.Staged}}{{end}}
FROM bench_row AS s
WHERE t.IVCE_DTL_UID = +s.detail_id
;
INSERT INTO IVCE_TRKG_MSTR (
    IVCE_DTL_UID{{range .Tracking}},
    {{.Name}}{{end}}
)
SELECT
    s.detail_id{{range .Tracking}},
    s.{{.Staged}}{{end}}
FROM bench_row AS s
WHERE NOT EXISTS (SELECT 1 FROM IVCE_TRKG_MSTR AS t WHERE t.IVCE_DTL_UID = s.detail_id)
;
