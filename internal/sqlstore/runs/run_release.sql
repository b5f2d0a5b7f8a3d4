-- The manager lets go of its run. Where @ended is 1, there is nothing more to hand off.
{{template "begin.sql" . -}}
UPDATE {{.Run}}
SET
    owner = NULL, heartbeat_at = {{.Now}},
    handed_off_at = CASE WHEN @ended = 1 THEN {{.Now}} ELSE handed_off_at END
{{template "leased.sql" . -}}
