-- When the ledger became complete: NULL while an adoption is running.
SELECT a.finished_at FROM {{.Prefix}}adoption AS a WHERE a.id = 1;
