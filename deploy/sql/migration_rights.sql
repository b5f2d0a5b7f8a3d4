-- Least rights for whoever runs `sqlwriterctl migrate up` (or the script that `sqlwriterctl migrate script` prints), for
-- the DBA to run in the database of IVCE_DTL. The schema is dbo's, so that it does not hang on one person's user. Who has
-- these rights may make and change what is in our two schemas. Procedures made there have dbo's rights to dbo's tables, so
-- give them to whom you would let read each procedure before it is created, and for the migration alone.
-- Replace sqlwriter_migration by the user's name; take the rights away again when the migration is done.
-- It may be run again: an update may need more than the version before.
IF SCHEMA_ID(N'sqlwriter') IS NULL EXEC (N'CREATE SCHEMA sqlwriter AUTHORIZATION dbo');
IF SCHEMA_ID(N'sqlwriter_preview') IS NULL EXEC (N'CREATE SCHEMA sqlwriter_preview AUTHORIZATION dbo');
IF DATABASE_PRINCIPAL_ID(N'sqlwriter_migrations') IS NULL CREATE ROLE sqlwriter_migrations;
GRANT CREATE TABLE TO sqlwriter_migrations;
GRANT CREATE VIEW TO sqlwriter_migrations;
GRANT CREATE PROCEDURE TO sqlwriter_migrations;
GRANT ALTER, SELECT, INSERT, UPDATE, REFERENCES ON SCHEMA::sqlwriter TO sqlwriter_migrations;
GRANT ALTER ON SCHEMA::sqlwriter_preview TO sqlwriter_migrations;
ALTER ROLE sqlwriter_migrations ADD MEMBER sqlwriter_migration;
