-- Guarantees: the row as it was committed.
SELECT
    @committed_id AS database_id,
    @committed AS number;
