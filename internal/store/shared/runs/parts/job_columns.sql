    j.job_id, j.run_id, j.number, j.status, j.attempt, j.queue_attempt_count, j.last_queue_error, j.error, j.owner, j.epoch,
    j.total_count, j.success_count, j.failure_count, j.created_at, j.queued_at, j.process_start_time, j.process_end_time,
    j.heartbeat_at, j.lost_workers
FROM {{.Batch}} AS j
{{- /**/ -}}
