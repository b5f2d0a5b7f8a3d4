-- The last run of a kind that completed and named no documents.
SELECT{{.Top}} r.run_id, r.started_at
FROM {{.Run}} AS r
WHERE r.kind = @kind AND r.sys_name = @sys_name AND {{.NoIndex}}r.status = 'completed' AND r.named_count = 0
ORDER BY r.run_number DESC{{.Limit}};
