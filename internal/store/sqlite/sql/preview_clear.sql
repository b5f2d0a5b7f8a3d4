-- Guarantees: the copy of the ledger is empty.
DELETE FROM {{.Copy}};
