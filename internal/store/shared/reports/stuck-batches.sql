-- Batches in processing without a heartbeat for ten minutes, or released ten minutes ago, the longest silent first
-- (docs/requirements.md R75). The timer rescues them. A batch that appears twice needs an operator.
WITH batches AS (
    SELECT
        b.run_id,
        b.batch_number,
        b.batch_id,
        b.process_start_time,
        b.last_heartbeat,
        COALESCE(b.last_heartbeat, b.updated_at) AS silent_since
    FROM {{.Batch}} AS b
    WHERE
        b.batch_status = 'processing'
        AND {{.OwnRuns "b.run_id"}}
)

SELECT{{.Top}}
    b.run_id,
    b.batch_number,
    b.batch_id,
    b.process_start_time,
    b.last_heartbeat,
    {{.Seconds "b.silent_since" .Now}} AS silent_seconds
FROM batches AS b
WHERE b.silent_since < {{.Ago .DeadSeconds}}
ORDER BY b.silent_since ASC, b.run_id ASC, b.batch_number ASC{{.Limit}};
