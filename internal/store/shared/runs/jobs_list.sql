-- Batches{{if .ByRun}} of a run by number{{else}}, latest first{{end}}{{if .ByStatus}}, with one status{{end}},
-- behind one of them or from the start.
SELECT{{.Top}}
{{template "job_columns.sql" .}}
{{- if .ByRun}}
WHERE
    j.run_id = @run{{if .ByStatus}} AND j.status = @status{{end}}
    AND j.number > CASE
        WHEN @after = '' THEN 0
        ELSE (SELECT b.number FROM {{.Batch}} AS b WHERE b.job_id = @after)
    END
ORDER BY j.number{{.Limit}};
{{- else}}

WHERE
{{- if .ByStatus}}
    j.job_number IN (
        SELECT{{.Top}} k.job_number FROM {{.Batch}} AS k
        WHERE
            k.status = @status
            AND k.job_number < CASE
                WHEN @after = '' THEN 9223372036854775807
                ELSE (SELECT b.job_number FROM {{.Batch}} AS b WHERE b.job_id = @after)
            END
        ORDER BY k.job_number DESC{{.Limit}}
    )
{{- else}}
    j.job_number < CASE
        WHEN @after = '' THEN 9223372036854775807
        ELSE (SELECT b.job_number FROM {{.Batch}} AS b WHERE b.job_id = @after)
    END
{{- end}}
ORDER BY j.job_number DESC{{.Limit}};
{{- end}}
