-- Gives a run to a manager. Of all who try at the same time one changes the row: the epoch that they read is gone then.
-- A former owner that is still there let go of it (its epoch is @shown), or has said nothing for @stale and is lost.
{{template "begin.sql" . -}}
UPDATE {{.Run}}
SET
    owner = @owner, epoch = epoch + 1, heartbeat_at = {{.Now}},
    lost_managers = lost_managers + CASE WHEN owner IS NOT NULL AND epoch <> @shown THEN 1 ELSE 0 END
WHERE
    run_id = @run AND epoch = @epoch AND status = 'running' AND cancel = 0 AND pattern IS NOT NULL AND handed_off_at IS NULL
    AND (
        owner IS NULL OR epoch = @shown
        OR heartbeat_at <= {{.Ago "stale"}}
    );
