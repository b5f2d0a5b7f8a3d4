-- Made by sqlwriterctl migrate up, one set for each build and settings file (sqlwriter.procedure_set).
CREATE PROCEDURE sqlwriter.reconcile_names_hash
    @after bigint,
    @limit int
AS
BEGIN
    -- begin_lowest
    -- Guarantees: an error ends the whole request. A wait for a lock is bounded. In a deadlock a comparison or a purge
    -- loses to every write, whose priority is LOW (-5) or higher.
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    SET LOCK_TIMEOUT 5000;
    SET DEADLOCK_PRIORITY -10;
    -- reconcile_names
    -- Guarantees: the next ledger rows by the key, at most @limit of them whatever their environment, with their documents.
    SELECT TOP (@limit)
        l.detail_id,
        l.document_id,
        l.sys_name
    FROM [sqlwriter].[ledger] AS l
    WHERE l.detail_id > @after
    ORDER BY l.detail_id;
END;
