-- Runs an empty preview, write, rewrite, comparison, purge and start of the newest procedures as the app's user. Each statement
-- requires its rights and finds no row, and the tables' triggers fire without rows.
-- Error 229 names an object outside the ownership chain. The schemas sqlwriter and sqlwriter_preview and the tables
-- need one owner.
-- A member of db_owner runs this. Replace sqlwriter_app by the app's user, and dbo by the tables' schema.
SELECT
    o.name AS object_name,
    SCHEMA_NAME(o.schema_id) AS schema_name,
    USER_NAME(OBJECTPROPERTY(o.object_id, N'OwnerId')) AS owner_name
FROM sys.objects AS o
WHERE o.name IN (N'IVCE_DTL', N'IVCE_TRKG_MSTR', N'ledger') OR o.name LIKE N'apply[_]%' OR o.name LIKE N'rewrite[_]%'
    OR o.name LIKE N'preview[_]%' OR o.name LIKE N'reconcile[_]%' OR o.name LIKE N'purge[_]%';
DECLARE @hash varchar(12) = (SELECT TOP (1) s.set_hash FROM sqlwriter.procedure_set AS s ORDER BY s.installed_at DESC);
DECLARE @preview nvarchar(300) = N'sqlwriter_preview.preview_' + @hash;
DECLARE @apply nvarchar(300) = N'sqlwriter.apply_' + @hash;
DECLARE @read nvarchar(300) = N'sqlwriter.rewrite_read_' + @hash;
DECLARE @rewrite nvarchar(300) = N'sqlwriter.rewrite_' + @hash;
DECLARE @scan nvarchar(300) = N'sqlwriter.reconcile_scan_' + @hash;
DECLARE @lines nvarchar(300) = N'sqlwriter.reconcile_lines_' + @hash;
DECLARE @purge nvarchar(300) = N'sqlwriter.purge_' + @hash;
DECLARE @started nvarchar(300) = N'sqlwriter.started_' + @hash;
EXECUTE AS USER = 'sqlwriter_app';
BEGIN TRY
    EXEC @preview
        @request = N'{"items":[],"lines":[]}', @hashes = 0x, @expected = 0, @marks = 0, @twice = 0, @sys_name = N'';
    EXEC @apply
        @request = N'{"items":[],"lines":[]}', @hashes = 0x, @expected = 0, @marks = 0, @twice = 0,
        @sys_name = N'', @database_id = NULL, @number = 0, @one_writer = 1;
    EXEC @read @request = N'{"items":[],"lines":[]}', @hashes = 0x, @expected = 0, @releases = N'[]';
    EXEC @rewrite
        @request = N'{"items":[],"lines":[]}', @hashes = 0x, @expected = 0, @marks = 0, @twice = 0,
        @sys_name = N'', @database_id = NULL, @number = 0, @one_writer = 1, @releases = N'[]';
    EXEC @scan @after = 9223372036854775807, @limit = 1, @sys_name = N'', @days = 0;
    EXEC @lines @lines = N'[]', @days = 0;
    EXEC @purge @part = 'audit_log', @days = 36500, @limit = 1, @sys_name = N'';
    EXEC @started @set = '';
    SELECT N'the rights are enough' AS answer;
END TRY
BEGIN CATCH
    SELECT ERROR_NUMBER() AS error_number, ERROR_MESSAGE() AS answer;
END CATCH;
REVERT;
