-- Gives a run to a manager. Of several claims at the same time one succeeds, because it changes the epoch that the
-- others expect. A former owner released the run (its epoch is @shown), or its heartbeat is older than @stale and
-- it counts as lost.
{{template "begin.sql" . -}}
UPDATE {{.Prefix}}run
SET
    owner = @owner, epoch = epoch + 1, heartbeat_at = {{.Now}},
    lost_managers = lost_managers + CASE WHEN owner IS NOT NULL AND epoch <> @shown THEN 1 ELSE 0 END
WHERE
    run_id = @run AND epoch = @epoch AND status = 'running' AND cancel = 0 AND handed_off_at IS NULL
    AND (
        owner IS NULL OR epoch = @shown
        OR heartbeat_at <= {{.Ago "stale"}}
    );
