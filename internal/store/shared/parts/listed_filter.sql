CASE WHEN r.named_count = 0 THEN r.filter END AS filter
{{- /**/ -}}
