-- Guarantees: the lines of the previous request are gone.
DELETE FROM {{.Row}};
