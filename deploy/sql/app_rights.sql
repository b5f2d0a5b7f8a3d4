-- Least rights for the app, for the DBA to run in the database of IVCE_DTL after the migrations. Replace sqlwriter_app by
-- the app's user: CREATE USER [NAME-OF-THE-FUNCTION-APP] FROM EXTERNAL PROVIDER for a managed identity, or
-- CREATE USER sqlwriter_app FOR LOGIN sqlwriter_app. The tables may be in another schema than dbo (SQL_SCHEMA).
CREATE ROLE sqlwriter_writers;
-- Our own schema: the app never deletes from the ledger, changes no table, does not say what was migrated, and never
-- changes what the audit log says.
GRANT SELECT, INSERT, UPDATE ON SCHEMA::sqlwriter TO sqlwriter_writers;
DENY INSERT, UPDATE ON OBJECT::sqlwriter.migration TO sqlwriter_writers;
DENY UPDATE ON OBJECT::sqlwriter.audit_log TO sqlwriter_writers;
-- The user's tables: detail rows are never made, nothing is ever deleted.
GRANT SELECT, UPDATE ON OBJECT::dbo.IVCE_DTL TO sqlwriter_writers;
GRANT SELECT, INSERT, UPDATE ON OBJECT::dbo.IVCE_TRKG_MSTR TO sqlwriter_writers;
-- The check at the start names triggers and defaults.
GRANT VIEW DEFINITION ON OBJECT::dbo.IVCE_DTL TO sqlwriter_writers;
GRANT VIEW DEFINITION ON OBJECT::dbo.IVCE_TRKG_MSTR TO sqlwriter_writers;
ALTER ROLE sqlwriter_writers ADD MEMBER sqlwriter_app;
