-- Guarantees: one bad statement ends the whole request and undoes it; a lock that somebody holds costs a few
-- seconds and not for ever; where two block each other the user's own programs win.
SET NOCOUNT ON;
SET XACT_ABORT ON;
SET LOCK_TIMEOUT {{.LockTimeout}};
SET DEADLOCK_PRIORITY LOW;
