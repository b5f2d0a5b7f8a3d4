-- Guarantees: all or nothing, whoever raises the error. XACT_ABORT alone would let a RAISERROR of a user's
-- trigger pass and commit what came before it.
BEGIN TRY
    BEGIN TRANSACTION;
