-- What a person needs for `sqlwriterctl ledger adopt`, beside the rights of app_rights.sql. The app itself never needs it:
-- whoever may write the adoption may say which results are in IVCE_DTL.
-- A DBA runs this in the database of IVCE_DTL. Replace sqlwriter_operator by the person's user.
IF DATABASE_PRINCIPAL_ID(N'sqlwriter_adopters') IS NULL CREATE ROLE sqlwriter_adopters;
GRANT INSERT, UPDATE ON OBJECT::sqlwriter.adoption TO sqlwriter_adopters;
ALTER ROLE sqlwriter_adopters ADD MEMBER sqlwriter_operator;
