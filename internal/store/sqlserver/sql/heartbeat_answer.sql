-- Guarantees: the answer is the committed row.
SELECT
    @committed_id AS database_id,
    @committed AS number;
