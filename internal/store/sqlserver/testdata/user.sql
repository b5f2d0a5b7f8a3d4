-- The app's user. Its SID is the bytes of its identity's client id, so the server asks no directory.
-- deploy/sql/check_rights.sql tries its rights. DROP USER takes it back; the schemas and all rows stay.
DECLARE @client uniqueidentifier = (
    SELECT CAST(p.sid AS uniqueidentifier) FROM sys.database_principals AS p WHERE p.name = N'web_identity'
);
IF @client <> CAST('aa0ca2bc-3342-4a36-9665-6c2c171425a0' AS uniqueidentifier)
    BEGIN
        DECLARE @refusal nvarchar(2048) = CONCAT(
            N'web_identity is the user of client id ', LOWER(CAST(@client AS nvarchar(36))), N' and not of ',
            N'aa0ca2bc-3342-4a36-9665-6c2c171425a0: DROP USER [web_identity], or choose another name'
        );
        THROW 52749, @refusal, 1;
    END;
IF DATABASE_PRINCIPAL_ID(N'web_identity') IS NULL
    EXEC (N'CREATE USER [web_identity] WITH SID = 0xBCA20CAA4233364A96656C2C171425A0, TYPE = E');
GO
IF DATABASE_PRINCIPAL_ID(N'sqlwriter_writers') IS NULL CREATE ROLE sqlwriter_writers;
GRANT EXECUTE ON SCHEMA::sqlwriter TO sqlwriter_writers;
GRANT EXECUTE ON SCHEMA::sqlwriter_preview TO sqlwriter_writers;
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
GRANT SELECT ON OBJECT::[dbo].IVCE_DTL TO sqlwriter_writers;
GRANT SELECT ON OBJECT::[dbo].IVCE_TRKG_MSTR TO sqlwriter_writers;
GRANT VIEW DEFINITION ON OBJECT::[dbo].IVCE_DTL TO sqlwriter_writers;
GRANT VIEW DEFINITION ON OBJECT::[dbo].IVCE_TRKG_MSTR TO sqlwriter_writers;
ALTER ROLE sqlwriter_writers ADD MEMBER [web_identity];
