-- What the app's start check does, for the DBA: an empty preview and an empty write by the newest procedures, as the app's
-- user. Each of their statements asks for its rights and finds no row. Error 229 names what the chain of owners does not
-- reach: the schemas sqlwriter and sqlwriter_preview and the schema of the tables need one owner.
-- Run it as a member of db_owner; replace sqlwriter_app by the app's user.
DECLARE @hash char(12) = (SELECT TOP (1) s.set_hash FROM sqlwriter.procedure_set AS s ORDER BY s.installed_at DESC);
DECLARE @preview nvarchar(300) = N'sqlwriter_preview.preview_' + @hash;
DECLARE @apply nvarchar(300) = N'sqlwriter.apply_' + @hash;
EXECUTE AS USER = 'sqlwriter_app';
EXEC @preview @request = N'{"items":[],"lines":[]}', @rewrite = 0, @expected = 0, @marks = 0, @twice = 0;
EXEC @apply
    @request = N'{"items":[],"lines":[]}', @rewrite = 0, @expected = 0, @marks = 0, @twice = 0,
    @sys_name = N'', @database_id = NULL, @number = 0;
REVERT;
SELECT
    s.name AS schema_name,
    USER_NAME(s.principal_id) AS owner_name
FROM sys.schemas AS s
WHERE s.name IN (N'sqlwriter', N'sqlwriter_preview', N'dbo');
