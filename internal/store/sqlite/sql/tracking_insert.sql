-- Guarantees: an applied line without a tracking row gets one. Updated and inserted rows together are as many as the
-- applied lines (checked by the caller): a row that somebody else made in between has our values in neither count.
INSERT INTO {{.TrackingTable}} (
    {{.TrackingKey}}{{range .Tracking}},
    {{.Name}}{{end}}
)
SELECT
    s.detail_id{{range .Tracking}},
    s.{{.Staged}}{{end}}
FROM {{template "applied" .}} AS s
WHERE s.mark = 0 AND NOT EXISTS (SELECT 1 FROM {{.TrackingTable}} AS t WHERE t.{{.TrackingKey}} = s.detail_id);
