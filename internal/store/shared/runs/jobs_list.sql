-- Batches{{if .ByRun}} of a run by number{{else}}, latest first{{end}}{{if .ByStatus}}, with one status{{end}}.
SELECT{{.Top}}
{{template "job_columns.sql" .}}
{{- if .ByRun}}
WHERE j.run_id = @run{{if .ByStatus}} AND j.status = @status{{end}}
ORDER BY j.number{{.Limit}};
{{- else}}
{{- if .ByStatus}}
WHERE j.status = @status
{{- end}}
ORDER BY j.job_number DESC{{.Limit}};
{{- end}}
