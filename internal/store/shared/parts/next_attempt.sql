    status = 'pending_retry', attempt = attempt + 1, epoch = epoch + 1, queue_attempt_count = 0, lost_workers = 0,
    last_queue_error = NULL, error = NULL, owner = NULL, heartbeat_at = NULL, process_end_time = NULL,
    updated_at = {{.Now}}
{{- /**/ -}}
