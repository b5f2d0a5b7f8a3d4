-- The latest runs, newest first: their numbers grow, whatever the clock does.
SELECT{{.Top}}
    r.run_id, r.kind, r.filter, r.requested_by, r.why, r.status, r.cancel, r.counts, r.started_at, r.ended_at
FROM {{.Run}} AS r
ORDER BY r.run_number DESC{{.Limit}};
