-- Batches of running runs whose message must be sent again, by run (oldest first) and number.
SELECT{{.Top}}
{{template "batch_columns.sql" .}}
INNER JOIN {{.Prefix}}run AS r ON r.run_id = b.run_id
WHERE r.status = 'running' AND r.cancel = 0 AND r.sys_name = @sys_name AND b.status = 'pending_retry'
ORDER BY r.run_number, b.number{{.Limit}};
