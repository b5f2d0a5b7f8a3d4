-- Batches{{if .ByRun}} of a run by number{{else}}, latest first{{end}}{{if .ByStatus}}, with one status{{end}},
-- behind one of them or from the start.
SELECT{{.Top}}
{{template "batch_columns.sql" .}}
{{- if .ByRun}}
WHERE
    b.run_id = @run{{if .ByStatus}} AND b.status = @status{{end}}
    AND b.number > CASE
        WHEN @after = '' THEN 0
        ELSE (SELECT a.number FROM {{.Prefix}}batch AS a WHERE a.batch_id = @after)
    END
ORDER BY b.number{{.Limit}};
{{- else}}

WHERE
{{- if .ByStatus}}
    b.serial_number IN (
        SELECT{{.Top}} k.serial_number FROM {{.Prefix}}batch AS k
        WHERE
            k.status = @status
            AND k.serial_number < CASE
                WHEN @after = '' THEN 9223372036854775807
                ELSE (SELECT a.serial_number FROM {{.Prefix}}batch AS a WHERE a.batch_id = @after)
            END
        ORDER BY k.serial_number DESC{{.Limit}}
    )
{{- else}}
    b.serial_number < CASE
        WHEN @after = '' THEN 9223372036854775807
        ELSE (SELECT a.serial_number FROM {{.Prefix}}batch AS a WHERE a.batch_id = @after)
    END
{{- end}}
ORDER BY b.serial_number DESC{{.Limit}};
{{- end}}
