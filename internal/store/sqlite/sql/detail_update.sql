-- Guarantees: the detail rows of applied lines get every column of the mapping; one
-- that keeps its value, where the document has one. The caller checks their number.
UPDATE {{.DetailTable}} AS t
SET{{range $n, $c := .Detail}}{{if $n}},{{end}}
    {{$c.Name}} = {{if $c.IsStatus}}iif(s.keep_status, t.{{$c.Name}}, s.{{$c.Staged}}){{else if $c.Keep}}coalesce(s.{{$c.Staged}}, t.{{$c.Name}}){{else}}s.{{$c.Staged}}{{end}}{{end}}
FROM {{template "applied" .}} AS s
WHERE t.{{.DetailKey}} = +s.detail_id AND s.mark = 0;
