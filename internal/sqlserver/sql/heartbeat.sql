-- Guarantees: the number of the environment's row is one higher, or the row is made with the number 1 and an id of its
-- own. Of two that make it at once the primary key refuses one, which then has changed nothing.
UPDATE sqlwriter.heartbeat
SET number = number + 1, raised_at = SYSUTCDATETIME()
WHERE sys_name = @sys_name;
IF @@ROWCOUNT = 0
    INSERT INTO sqlwriter.heartbeat (sys_name, database_id, number, raised_at)
    VALUES (@sys_name, NEWID(), 1, SYSUTCDATETIME());
