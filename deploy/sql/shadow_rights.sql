-- Least rights for an app with MODE=shadow, for the DBA to run in the database of IVCE_DTL after the migrations. It may ask
-- what a write would do, and neither write nor read a table by itself. Replace sqlwriter_shadow by the app's user.
CREATE ROLE sqlwriter_readers;
GRANT EXECUTE ON SCHEMA::sqlwriter_preview TO sqlwriter_readers;
ALTER ROLE sqlwriter_readers ADD MEMBER sqlwriter_shadow;
