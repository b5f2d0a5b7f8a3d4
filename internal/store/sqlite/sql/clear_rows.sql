-- Guarantees: the request starts without the lines of the one before.
DELETE FROM {{.Row}};
