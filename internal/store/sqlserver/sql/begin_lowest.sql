-- Guarantees: an error ends the whole request. A wait for a lock is bounded. In a deadlock a comparison or a purge
-- loses to every write, whose priority is LOW (-5) or higher.
SET NOCOUNT ON;
SET XACT_ABORT ON;
SET LOCK_TIMEOUT {{.LockTimeout}};
SET DEADLOCK_PRIORITY -10;
