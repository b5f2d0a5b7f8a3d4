-- Releases a run that the manager has. With @ended = 1 the hand-off is complete, and the count of lost managers is
-- reset.
{{template "begin.sql" . -}}
UPDATE {{.Prefix}}run
SET
    owner = NULL, heartbeat_at = {{.Now}},
    handed_off_at = CASE WHEN @ended = 1 THEN {{.Now}} ELSE handed_off_at END,
    lost_managers = CASE WHEN @ended = 1 THEN 0 ELSE lost_managers END
{{template "run_leased.sql" . -}}
