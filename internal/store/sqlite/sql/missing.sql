-- Guarantees: a line without a detail row is marked as missing first. We never add a detail row.
UPDATE {{.Row}} AS r
SET missing = 1
WHERE NOT EXISTS (SELECT 1 FROM {{.DetailTable}} AS t WHERE t.{{.DetailKey}} = r.detail_id);
