-- The comparison that began last of those that ended well and named no documents.
SELECT{{.Top}}
    c.comparison_id, c.night, c.requested_by, c.why, c.step, c.position, c.counts, c.error, c.begun_at, c.moved_at,
    c.ended_at, '{}' AS request, {{.Now}} AS read_at
FROM {{.Prefix}}comparison AS c
WHERE c.sys_name = @sys_name AND c.ended_at IS NOT NULL AND c.named = 0 AND c.error IS NULL
ORDER BY c.begun_at DESC, c.comparison_id DESC{{.Limit}};
