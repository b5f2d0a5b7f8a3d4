OPENJSON(@request) WITH (
    lines nvarchar(max) '$[0]' AS JSON{{range .Values}}{{if not .PerLine}},
    {{.Staged}} {{.Type}} '$[{{.Nested}}]'{{end}}{{end}}
) AS i
CROSS APPLY OPENJSON(i.lines) WITH (
    detail_id bigint '$[0]'{{range .Values}}{{if .PerLine}},
    {{.Staged}} {{.Type}} '$[{{.Nested}}]'{{end}}{{end}}
) AS r
