-- Least rights of the app. A DBA runs this in the database of IVCE_DTL after the migrations, and again after an
-- update whose check at the start names a right.
-- For a managed identity `sqlwriterctl migrate up --user` (or `migrate script --user`) makes the user and does all of this.
-- Otherwise replace sqlwriter_app by the app's user.
-- Replace dbo if the tables are in another schema (SQL_SCHEMA).
IF DATABASE_PRINCIPAL_ID(N'sqlwriter_writers') IS NULL CREATE ROLE sqlwriter_writers;
-- The procedures write with the rights of their schema's owner, on objects of the same owner.
GRANT EXECUTE ON SCHEMA::sqlwriter TO sqlwriter_writers;
GRANT EXECUTE ON SCHEMA::sqlwriter_preview TO sqlwriter_writers;
-- Our own tables. The app writes neither the ledger, nor the heartbeat, nor the adoption, nor the records of migrations
-- and mappings.
-- It adds to the audit log by audit_add, which stamps the server's time and login. It deletes findings alone, which each
-- night makes anew. Old rows go by the procedure purge_..., which refuses what is younger than 30 days. Of the audit log
-- it deletes what sqlwriter.audit_retention allows, which the app cannot write.
GRANT SELECT ON OBJECT::sqlwriter.migration TO sqlwriter_writers;
GRANT SELECT ON OBJECT::sqlwriter.mapping TO sqlwriter_writers;
GRANT SELECT ON OBJECT::sqlwriter.procedure_set TO sqlwriter_writers;
GRANT SELECT ON OBJECT::sqlwriter.ledger TO sqlwriter_writers;
GRANT SELECT ON OBJECT::sqlwriter.adoption TO sqlwriter_writers;
GRANT SELECT, INSERT, UPDATE ON OBJECT::sqlwriter.run TO sqlwriter_writers;
GRANT SELECT ON OBJECT::sqlwriter.audit_log TO sqlwriter_writers;
GRANT SELECT, INSERT, UPDATE ON OBJECT::sqlwriter.batch TO sqlwriter_writers;
GRANT SELECT, INSERT, UPDATE ON OBJECT::sqlwriter.batch_item TO sqlwriter_writers;
GRANT SELECT, INSERT, UPDATE ON OBJECT::sqlwriter.worker TO sqlwriter_writers;
GRANT SELECT, INSERT ON OBJECT::sqlwriter.error_detail TO sqlwriter_writers;
GRANT SELECT, INSERT, UPDATE, DELETE ON OBJECT::sqlwriter.finding TO sqlwriter_writers;
GRANT SELECT, INSERT, UPDATE ON OBJECT::sqlwriter.comparison TO sqlwriter_writers;
GRANT SELECT ON OBJECT::sqlwriter.processing_job TO sqlwriter_writers;
-- The app only reads the user's tables.
GRANT SELECT ON OBJECT::dbo.IVCE_DTL TO sqlwriter_writers;
GRANT SELECT ON OBJECT::dbo.IVCE_TRKG_MSTR TO sqlwriter_writers;
-- The check at the start reads triggers and defaults.
GRANT VIEW DEFINITION ON OBJECT::dbo.IVCE_DTL TO sqlwriter_writers;
GRANT VIEW DEFINITION ON OBJECT::dbo.IVCE_TRKG_MSTR TO sqlwriter_writers;
ALTER ROLE sqlwriter_writers ADD MEMBER sqlwriter_app;
