-- Least rights for an app with MODE=shadow, for the DBA to run in the database of IVCE_DTL after the migrations. It may ask
-- what a write would do, and see what the tables' columns hold; it reads and writes no row by itself.
-- Replace sqlwriter_shadow by the app's user.
IF DATABASE_PRINCIPAL_ID(N'sqlwriter_readers') IS NULL CREATE ROLE sqlwriter_readers;
GRANT EXECUTE ON SCHEMA::sqlwriter_preview TO sqlwriter_readers;
GRANT VIEW DEFINITION ON OBJECT::dbo.IVCE_DTL TO sqlwriter_readers;
GRANT VIEW DEFINITION ON OBJECT::dbo.IVCE_TRKG_MSTR TO sqlwriter_readers;
ALTER ROLE sqlwriter_readers ADD MEMBER sqlwriter_shadow;
