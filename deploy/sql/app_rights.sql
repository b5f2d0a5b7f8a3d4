-- Least rights for the app, for the DBA to run in the database of IVCE_DTL after the migrations, and again after an update
-- whose start check names a right. Replace sqlwriter_app by the app's user:
-- CREATE USER [NAME-OF-THE-FUNCTION-APP] FROM EXTERNAL PROVIDER for a managed identity, or
-- CREATE USER sqlwriter_app FOR LOGIN sqlwriter_app. The tables may be in another schema than dbo (SQL_SCHEMA).
IF DATABASE_PRINCIPAL_ID(N'sqlwriter_writers') IS NULL CREATE ROLE sqlwriter_writers;
-- The procedures write. They have the rights of their schemas' owner to what belongs to the same owner.
GRANT EXECUTE ON SCHEMA::sqlwriter TO sqlwriter_writers;
GRANT EXECUTE ON SCHEMA::sqlwriter_preview TO sqlwriter_writers;
-- The bookkeeping. The app writes neither the ledger nor the heartbeat, does not say what was migrated, and never changes
-- what the audit log says.
GRANT SELECT ON OBJECT::sqlwriter.migration TO sqlwriter_writers;
GRANT SELECT ON OBJECT::sqlwriter.procedure_set TO sqlwriter_writers;
GRANT SELECT ON OBJECT::sqlwriter.ledger TO sqlwriter_writers;
GRANT SELECT, INSERT, UPDATE ON OBJECT::sqlwriter.adoption TO sqlwriter_writers;
GRANT SELECT, INSERT, UPDATE ON OBJECT::sqlwriter.run TO sqlwriter_writers;
GRANT SELECT, INSERT ON OBJECT::sqlwriter.audit_log TO sqlwriter_writers;
GRANT SELECT, INSERT, UPDATE ON OBJECT::sqlwriter.job TO sqlwriter_writers;
GRANT SELECT, INSERT, UPDATE ON OBJECT::sqlwriter.batch_item TO sqlwriter_writers;
GRANT SELECT, INSERT, UPDATE ON OBJECT::sqlwriter.worker TO sqlwriter_writers;
GRANT SELECT, INSERT ON OBJECT::sqlwriter.error_detail TO sqlwriter_writers;
GRANT SELECT ON OBJECT::sqlwriter.batch TO sqlwriter_writers;
GRANT SELECT ON OBJECT::sqlwriter.processing_job TO sqlwriter_writers;
-- The user's tables are read, and nothing more.
GRANT SELECT ON OBJECT::dbo.IVCE_DTL TO sqlwriter_writers;
GRANT SELECT ON OBJECT::dbo.IVCE_TRKG_MSTR TO sqlwriter_writers;
-- The check at the start names triggers and defaults.
GRANT VIEW DEFINITION ON OBJECT::dbo.IVCE_DTL TO sqlwriter_writers;
GRANT VIEW DEFINITION ON OBJECT::dbo.IVCE_TRKG_MSTR TO sqlwriter_writers;
ALTER ROLE sqlwriter_writers ADD MEMBER sqlwriter_app;
