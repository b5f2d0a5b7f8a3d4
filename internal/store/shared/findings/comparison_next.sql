-- The comparison that was begun first of those that have not ended.
SELECT{{.Top}}
    c.comparison_id, c.night, c.requested_by, c.why, c.step, c.position, c.counts, c.error, c.begun_at, c.moved_at,
    c.ended_at, c.request, {{.Now}} AS read_at
FROM {{.Prefix}}comparison AS c
WHERE c.sys_name = @sys_name AND c.ended_at IS NULL
ORDER BY c.begun_at, c.comparison_id{{.Limit}};
