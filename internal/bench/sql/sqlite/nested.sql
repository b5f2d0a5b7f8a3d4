-- The bare write: the documents and their lines into temp tables, then the three statements. Nothing is checked, and
-- nothing is kept beside the user's tables. A line of its own ends each statement.
CREATE TEMP TABLE IF NOT EXISTS bench_item (
    doc INTEGER PRIMARY KEY{{range .Values}}{{if not .PerLine}},
    {{.Staged}}{{end}}{{end}}
)
;
CREATE TEMP TABLE IF NOT EXISTS bench_line (
    detail_id INTEGER PRIMARY KEY,
    doc INTEGER{{range .Values}}{{if .PerLine}},
    {{.Staged}}{{end}}{{end}}
)
;
DELETE FROM bench_item
;
DELETE FROM bench_line
;
WITH j AS MATERIALIZED (SELECT e.key, e.value FROM json_each(?1) AS e)
INSERT INTO bench_item
SELECT
    j.key{{range .Values}}{{if not .PerLine}},
    j.value ->> {{.Nested}}{{end}}{{end}}
FROM j
;
WITH j AS MATERIALIZED (
    SELECT i.key AS doc, e.value
    FROM json_each(?1) AS i, json_each(i.value, '$[0]') AS e
)
INSERT INTO bench_line
SELECT
    j.value ->> 0,
    j.doc{{range .Values}}{{if .PerLine}},
    j.value ->> {{.Nested}}{{end}}{{end}}
FROM j
;
UPDATE IVCE_DTL AS t
SET{{range $n, $c := .Detail}}{{if $n}},{{end}}
    {{$c.Name}} = s.{{$c.Staged}}{{end}}
FROM (SELECT * FROM bench_line AS l CROSS JOIN bench_item AS i ON i.doc = l.doc) AS s
WHERE t.IVCE_DTL_UID = +s.detail_id
;
UPDATE IVCE_TRKG_MSTR AS t
SET{{range $n, $c := .Tracking}}{{if $n}},{{end}}
    {{$c.Name}} = s.{{$c.Staged}}{{end}}
FROM (SELECT * FROM bench_line AS l CROSS JOIN bench_item AS i ON i.doc = l.doc) AS s
WHERE t.IVCE_DTL_UID = +s.detail_id
;
INSERT INTO IVCE_TRKG_MSTR (
    IVCE_DTL_UID{{range .Tracking}},
    {{.Name}}{{end}}
)
SELECT
    s.detail_id{{range .Tracking}},
    s.{{.Staged}}{{end}}
FROM (SELECT * FROM bench_line AS l CROSS JOIN bench_item AS i ON i.doc = l.doc) AS s
WHERE NOT EXISTS (SELECT 1 FROM IVCE_TRKG_MSTR AS t WHERE t.IVCE_DTL_UID = s.detail_id)
;
