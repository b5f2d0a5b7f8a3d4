-- What `sqlwriterctl migrate up --user` needs beside migration_rights.sql, which runs first: it makes the app's user and
-- gives it the rights of app_rights.sql. A DBA runs this in the database of IVCE_DTL.
-- Replace sqlwriter_setup by the person's user, and dbo if the tables are in another schema (SQL_SCHEMA). For an identity
-- it must be a user of Microsoft Entra.
-- To take it back, revoke all but SELECT: this user granted the app its right to read, which would go too.
IF DATABASE_PRINCIPAL_ID(N'sqlwriter_writers') IS NULL CREATE ROLE sqlwriter_writers;
GRANT ALTER ANY USER TO sqlwriter_setup;
GRANT ALTER ON ROLE::sqlwriter_writers TO sqlwriter_setup;
GRANT CONTROL ON SCHEMA::sqlwriter TO sqlwriter_setup;
GRANT CONTROL ON SCHEMA::sqlwriter_preview TO sqlwriter_setup;
-- To the user and not to a role: each grant would have to name a role whose right it uses.
GRANT SELECT, VIEW DEFINITION ON OBJECT::dbo.IVCE_DTL TO sqlwriter_setup WITH GRANT OPTION;
GRANT SELECT, VIEW DEFINITION ON OBJECT::dbo.IVCE_TRKG_MSTR TO sqlwriter_setup WITH GRANT OPTION;
