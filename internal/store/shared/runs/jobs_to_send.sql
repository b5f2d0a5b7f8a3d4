-- Batches of running runs whose message must be sent again, by run (oldest first) and number.
SELECT{{.Top}}
{{template "job_columns.sql" .}}
INNER JOIN {{.Run}} AS r ON r.run_id = j.run_id
WHERE r.status = 'running' AND r.cancel = 0 AND r.sys_name = @sys_name AND j.status = 'pending_retry'
ORDER BY r.run_number, j.number{{.Limit}};
