-- Guarantees: an error ends the whole request and undoes it. A wait for a lock is bounded. In a deadlock the
-- user's own programs win.
SET NOCOUNT ON;
SET XACT_ABORT ON;
SET LOCK_TIMEOUT {{.LockTimeout}};
SET DEADLOCK_PRIORITY LOW;
