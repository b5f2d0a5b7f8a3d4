-- Guarantees: all or nothing after any error. With XACT_ABORT alone a RAISERROR of a user's trigger would not
-- end the transaction, and the earlier statements would be committed.
BEGIN TRY
    BEGIN TRANSACTION;
