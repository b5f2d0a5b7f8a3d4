-- When the ledger became complete.
SELECT a.finished_at FROM {{.Adoption}} AS a WHERE a.id = 1 AND a.phase IN ('done', 'empty');
