-- Made by sqlwriterctl migrate up, one set for each build and settings file (sqlwriter.procedure_set).
CREATE PROCEDURE sqlwriter.started_hash
    @set varchar(12)
AS
BEGIN
    -- begin
    -- Guarantees: an error ends the whole request and undoes it. A wait for a lock is bounded. In a deadlock the
    -- user's own programs win.
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    SET LOCK_TIMEOUT 5000;
    SET DEADLOCK_PRIORITY LOW;
    -- started
    -- Guarantees: the record of a set of procedures has the day on which a build last started with it, by the database's
    -- clock.
    UPDATE sqlwriter.procedure_set
    SET used_on = CAST(SYSUTCDATETIME() AS date)
    WHERE set_hash = @set AND used_on < CAST(SYSUTCDATETIME() AS date);
END;
