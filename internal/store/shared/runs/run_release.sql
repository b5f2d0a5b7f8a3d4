-- The manager lets go of its run. Where @ended is 1, there is nothing more to hand off, and no manager
-- that died counts any more.
{{template "begin.sql" . -}}
UPDATE {{.Run}}
SET
    owner = NULL, heartbeat_at = {{.Now}},
    handed_off_at = CASE WHEN @ended = 1 THEN {{.Now}} ELSE handed_off_at END,
    lost_managers = CASE WHEN @ended = 1 THEN 0 ELSE lost_managers END
{{template "run_leased.sql" . -}}
