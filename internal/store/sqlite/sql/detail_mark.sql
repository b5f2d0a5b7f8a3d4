-- Guarantees: a failure mark changes only the line status of its applied lines. ?1 is the status.
UPDATE {{.DetailTable}} AS t
SET {{.Status}} = ?1
FROM {{template "applied" .}} AS s
WHERE t.{{.DetailKey}} = +s.detail_id AND s.mark = 1;
