CASE WHEN r.pattern IS NULL OR r.named_count = 0 THEN r.filter END AS filter
{{- /**/ -}}
