-- Gives a batch to a worker: one that nobody has, whose worker let go of it (its epoch is @shown), or has said nothing for
-- @stale. Of all who try at the same time one changes the row: the epoch that they read is gone then. A worker that did not
-- let go is lost.
{{template "begin.sql" . -}}
UPDATE {{.Batch}}
SET
    status = 'processing', owner = @owner, epoch = epoch + 1,
    heartbeat_at = {{.Now}}, claimed_at = {{.Now}}, updated_at = {{.Now}},
    process_start_time = COALESCE(process_start_time, {{.Now}}),
    lost_workers = lost_workers + CASE
        WHEN status = 'processing' AND owner IS NOT NULL AND epoch <> @shown THEN 1
        ELSE 0
    END
WHERE
    job_id = @job AND epoch = @epoch AND attempt <= @attempt
    AND (
        status IN ('pending_queue', 'pending_retry', 'queued')
        OR (
            status = 'processing'
            AND (
                owner IS NULL OR epoch = @shown
                OR heartbeat_at <= {{.Ago "stale"}}
            )
        )
    );
