-- Guarantees: the answer is the row of the environment ?1, or none.
SELECT
    database_id,
    number
FROM sqlwriter_heartbeat
WHERE sys_name = ?1;
