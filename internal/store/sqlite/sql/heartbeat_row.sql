-- Guarantees: the row of the environment ?1, if there is one.
SELECT
    database_id,
    number
FROM sqlwriter_heartbeat
WHERE sys_name = ?1;
