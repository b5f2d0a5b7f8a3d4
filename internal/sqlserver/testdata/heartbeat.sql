DECLARE @sys_name nvarchar(256);
-- begin
-- Guarantees: one bad statement ends the whole request and undoes it; a lock that somebody holds costs a few seconds
-- and not for ever; where two block each other the user's own programs win.
SET NOCOUNT ON;
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
SET DEADLOCK_PRIORITY LOW;
DECLARE @write_id uniqueidentifier = NEWID();
DECLARE @rows int, @lines int, @missing int, @known int, @tracked int, @winners int;
DECLARE @stamped int = 0, @changed int = 0, @content int, @marks int, @written int;
DECLARE @note nvarchar(400);
-- transaction
-- Guarantees: all or nothing, whoever raises the error. XACT_ABORT alone would let a RAISERROR of a user's trigger pass
-- and commit what came before it.
BEGIN TRY
    BEGIN TRANSACTION;
    -- heartbeat
    -- Guarantees: the number of the environment's row is one higher, or the row is made with the number 1 and an id of its
    -- own. Of two that make it at once the primary key refuses one, which then has changed nothing.
    UPDATE sqlwriter.heartbeat
    SET number = number + 1, raised_at = SYSUTCDATETIME()
    WHERE sys_name = @sys_name;
    IF @@ROWCOUNT = 0
        INSERT INTO sqlwriter.heartbeat (sys_name, database_id, number, raised_at)
        VALUES (@sys_name, NEWID(), 1, SYSUTCDATETIME());
    -- commit
    COMMIT TRANSACTION;
END TRY
BEGIN CATCH
    IF @@TRANCOUNT > 0
        ROLLBACK TRANSACTION;
    THROW;
END CATCH;
