-- Gives a batch to a worker. The batch has no owner, its worker released it (its epoch is @shown), or its
-- heartbeat is older than @stale. Of several claims at the same time one succeeds, because it changes the epoch
-- that the others expect. A worker that did not release the batch counts as lost.
{{template "begin.sql" . -}}
UPDATE {{.Prefix}}batch
SET
    status = 'processing', owner = @owner, epoch = epoch + 1,
    heartbeat_at = {{.Now}}, claimed_at = {{.Now}}, updated_at = {{.Now}},
    process_start_time = COALESCE(process_start_time, {{.Now}}),
    lost_workers = lost_workers + CASE
        WHEN status = 'processing' AND owner IS NOT NULL AND epoch <> @shown THEN 1
        ELSE 0
    END
WHERE
    batch_id = @batch AND epoch = @epoch AND attempt = @attempt
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
