-- Guarantees: the request starts without the items of the one before.
DELETE FROM {{.Item}};
