    r.run_id, r.sys_name, r.kind, r.rate_per_minute, r.document_limit, r.matched_count, r.at_least,
    r.named_count, r.requested_by, r.why, r.status, r.cancel, r.error, r.documents, r.batches, r.owner, r.epoch,
    r.started_at, r.handed_off_at, r.ended_at, r.heartbeat_at, r.next_at, r.lost_managers, {{.Now}} AS now_at
{{- /**/ -}}
