-- The latest runs of an environment, newest first; no filter of workers that names documents.
SELECT{{.Top}}
    r.run_id, r.kind,
    {{template "listed_filter.sql" .}},
    r.matched_count, r.at_least, r.requested_by, r.why, r.status, r.cancel, r.counts, r.started_at, r.ended_at
FROM {{.Run}} AS r
WHERE r.sys_name = @sys_name
ORDER BY r.run_number DESC{{.Limit}};
