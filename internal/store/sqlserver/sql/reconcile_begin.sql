-- Guarantees: a wait for a lock is bounded. In a deadlock a reader loses to every writer, whose priority is LOW (-5) or
-- higher.
SET NOCOUNT ON;
SET XACT_ABORT ON;
SET LOCK_TIMEOUT {{.LockTimeout}};
SET DEADLOCK_PRIORITY -10;
