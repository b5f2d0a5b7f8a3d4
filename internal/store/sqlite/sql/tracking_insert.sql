-- Guarantees: an applied line without a tracking row gets one. The caller requires that updated and inserted
-- rows together equal the applied lines. Neither count includes a row that another session adds in between.
INSERT INTO {{.TrackingTable}} (
    {{.TrackingKey}}{{range .Tracking}},
    {{.Name}}{{end}}
)
SELECT
    s.detail_id{{range .Tracking}},
    s.{{.Staged}}{{end}}
FROM {{template "applied" .}} AS s
WHERE s.mark = 0 AND NOT EXISTS (SELECT 1 FROM {{.TrackingTable}} AS t WHERE t.{{.TrackingKey}} = s.detail_id);
