    b.batch_id, b.run_id, b.number, b.status, b.attempt, b.queue_attempt_count, b.last_queue_error, b.error, b.owner,
    b.epoch, b.total_count, b.success_count, b.failure_count, b.created_at, b.queued_at, b.process_start_time,
    b.process_end_time, b.heartbeat_at, b.lost_workers
FROM {{.Prefix}}batch AS b
{{- /**/ -}}
