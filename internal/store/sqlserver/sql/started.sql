-- Guarantees: the record of a set of procedures has the day on which a build last started with it, by the database's
-- clock.
UPDATE sqlwriter.procedure_set
SET used_on = CAST(SYSUTCDATETIME() AS date)
WHERE set_hash = @set AND used_on < CAST(SYSUTCDATETIME() AS date);
