OPENJSON(@request) WITH (
    detail_id bigint '$[0]'{{range .Values}},
    {{.Staged}} {{.Type}} '$[{{.Flat}}]'{{end}}
)
