-- Guarantees: the answer is how many rows went, after the commit.
SELECT @rows AS rows_purged;
