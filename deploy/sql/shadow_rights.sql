-- Least rights of an app with MODE=shadow. A DBA runs this in the database of IVCE_DTL after the migrations.
-- The app may preview a write, and read the definitions of the tables' columns and which mapping was chosen. It neither
-- reads nor writes other rows itself.
-- Replace sqlwriter_shadow by the app's user.
IF DATABASE_PRINCIPAL_ID(N'sqlwriter_readers') IS NULL CREATE ROLE sqlwriter_readers;
GRANT EXECUTE ON SCHEMA::sqlwriter_preview TO sqlwriter_readers;
GRANT SELECT ON OBJECT::sqlwriter.mapping TO sqlwriter_readers;
GRANT VIEW DEFINITION ON OBJECT::dbo.IVCE_DTL TO sqlwriter_readers;
GRANT VIEW DEFINITION ON OBJECT::dbo.IVCE_TRKG_MSTR TO sqlwriter_readers;
ALTER ROLE sqlwriter_readers ADD MEMBER sqlwriter_shadow;
