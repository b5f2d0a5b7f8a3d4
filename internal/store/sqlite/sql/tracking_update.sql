-- Guarantees: existing tracking rows get every column of the mapping; one that keeps its value,
-- where the document has one. Failure marks do not change this table.
UPDATE {{.TrackingTable}} AS t
SET{{range $n, $c := .Tracking}}{{if $n}},{{end}}
    {{$c.Name}} = {{if $c.IsStatus}}iif(s.keep_status, t.{{$c.Name}}, s.{{$c.Staged}}){{else if $c.Keep}}coalesce(s.{{$c.Staged}}, t.{{$c.Name}}){{else}}s.{{$c.Staged}}{{end}}{{end}}
FROM {{template "applied" .}} AS s
WHERE t.{{.TrackingKey}} = +s.detail_id AND s.mark = 0;
