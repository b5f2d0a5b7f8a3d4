-- Least rights for `sqlwriterctl migrate up` and `migrate prune`, or for the script of `sqlwriterctl migrate script`.
-- A DBA runs this in the database of IVCE_DTL.
-- The schemas belong to dbo, so they do not depend on a person's user. These rights allow every change in our two
-- schemas. Procedures in them have dbo's rights on dbo's tables. So grant them to a trusted person, for the migration
-- only.
-- Replace sqlwriter_migration by the user's name. The script may run again, because an update may need more rights.
IF SCHEMA_ID(N'sqlwriter') IS NULL EXEC (N'CREATE SCHEMA sqlwriter AUTHORIZATION dbo');
IF SCHEMA_ID(N'sqlwriter_preview') IS NULL EXEC (N'CREATE SCHEMA sqlwriter_preview AUTHORIZATION dbo');
IF DATABASE_PRINCIPAL_ID(N'sqlwriter_migrations') IS NULL CREATE ROLE sqlwriter_migrations;
GRANT CREATE TABLE TO sqlwriter_migrations;
GRANT CREATE VIEW TO sqlwriter_migrations;
GRANT CREATE PROCEDURE TO sqlwriter_migrations;
GRANT ALTER, SELECT, INSERT, UPDATE, DELETE, REFERENCES ON SCHEMA::sqlwriter TO sqlwriter_migrations;
GRANT ALTER ON SCHEMA::sqlwriter_preview TO sqlwriter_migrations;
ALTER ROLE sqlwriter_migrations ADD MEMBER sqlwriter_migration;
