-- The app's user. Its SID is the bytes of its identity's client id, so the server asks no directory.
-- deploy/sql/check_rights.sql tries its rights. DROP USER takes it back; the schemas and all rows stay.
DECLARE @client uniqueidentifier = (
    SELECT CAST(p.sid AS uniqueidentifier) FROM sys.database_principals AS p WHERE p.name = N'{{user}}'
);
IF @client <> CAST('{{client}}' AS uniqueidentifier)
    BEGIN
        DECLARE @refusal nvarchar(2048) = CONCAT(
            N'{{user}} is the user of client id ', LOWER(CAST(@client AS nvarchar(36))), N' and not of ',
            N'{{client}}: DROP USER {{quoted}}, or choose another name'
        );
        THROW {{number}}, @refusal, 1;
    END;
IF DATABASE_PRINCIPAL_ID(N'{{user}}') IS NULL
    EXEC (N'CREATE USER {{quoted}} WITH SID = {{sid}}, TYPE = E');
