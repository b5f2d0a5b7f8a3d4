-- Least rights for whoever runs `sqlwriterctl migrate up` (or the script that `sqlwriterctl migrate script` prints), for
-- the DBA to run in the database of IVCE_DTL. The schema is dbo's, so that it does not hang on one person's user. Who has
-- these rights may make and change what is in schema sqlwriter and nothing of the user's tables.
-- Replace sqlwriter_migration by the user's name; take the rights away again when the migration is done.
CREATE SCHEMA sqlwriter AUTHORIZATION dbo;
GO
CREATE ROLE sqlwriter_migrations;
GRANT CREATE TABLE TO sqlwriter_migrations;
GRANT CREATE VIEW TO sqlwriter_migrations;
GRANT ALTER, SELECT, INSERT, UPDATE, REFERENCES ON SCHEMA::sqlwriter TO sqlwriter_migrations;
ALTER ROLE sqlwriter_migrations ADD MEMBER sqlwriter_migration;
