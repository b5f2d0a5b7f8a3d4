-- Guarantees: the items of the previous request are gone.
DELETE FROM {{.Item}};
