-- Fails a batch whose message of @attempt is a dead letter, unless its worker is alive or it has another attempt.
{{template "begin.sql" . -}}
UPDATE {{.Prefix}}batch
SET status = 'failed', error = @reason, process_end_time = {{.Now}}, updated_at = {{.Now}}
WHERE
    batch_id = @batch AND epoch = @epoch AND attempt = @attempt
    AND (
        status IN ('pending_queue', 'pending_retry', 'queued')
        OR (
            status = 'processing'
            AND (owner IS NULL OR heartbeat_at <= {{.Ago "stale"}})
        )
    );
