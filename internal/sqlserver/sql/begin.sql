-- Guarantees: one bad statement ends the whole request and undoes it; a lock that somebody holds costs a few seconds
-- and not for ever; where two block each other the user's own programs win.
SET NOCOUNT ON;
SET XACT_ABORT ON;
SET LOCK_TIMEOUT {{.LockTimeout}};
SET DEADLOCK_PRIORITY LOW;
DECLARE @write_id uniqueidentifier = NEWID();
DECLARE @rows int, @lines int, @missing int, @known int, @tracked int, @winners int;
DECLARE @stamped int = 0, @changed int = 0, @content int, @marks int, @written int;
DECLARE @note nvarchar(400);
