-- columns.go, selectColumns
SET LOCK_TIMEOUT 5000;
SELECT
    CASE WHEN c.TABLE_NAME = @tracking THEN 1 ELSE 0 END,
    c.COLUMN_NAME, LOWER(c.DATA_TYPE), COALESCE(c.CHARACTER_MAXIMUM_LENGTH, 0), COALESCE(c.NUMERIC_PRECISION, 0),
    COALESCE(c.NUMERIC_SCALE, c.DATETIME_PRECISION, 0), CASE WHEN c.IS_NULLABLE = 'YES' THEN 1 ELSE 0 END,
    CASE WHEN c.COLUMN_DEFAULT IS NOT NULL OR s.default_object_id <> 0 THEN 1 ELSE 0 END,
    CASE
        WHEN c.DATA_TYPE IN ('timestamp', 'rowversion') OR s.is_computed = 1 OR s.generated_always_type <> 0 THEN 1
        ELSE 0
    END,
    COALESCE(s.is_identity, 0),
    COALESCE(CAST(COLLATIONPROPERTY(c.COLLATION_NAME, 'CodePage') AS int), 0)
FROM INFORMATION_SCHEMA.COLUMNS AS c
LEFT JOIN sys.columns AS s
    ON s.object_id = OBJECT_ID(QUOTENAME(c.TABLE_SCHEMA) + N'.' + QUOTENAME(c.TABLE_NAME)) AND s.name = c.COLUMN_NAME
WHERE c.TABLE_SCHEMA = @schema AND c.TABLE_NAME IN (@detail, @tracking)
ORDER BY c.TABLE_NAME, c.ORDINAL_POSITION;
GO
-- doctor.go, Login
SELECT USER_NAME(), SYSUTCDATETIME();
GO
-- fit.go, uniqueColumns
SELECT COALESCE(STRING_AGG(u.name, '/'), '') FROM (
    SELECT MAX(LOWER(COL_NAME(k.object_id, k.column_id))) AS name
    FROM sys.indexes AS i
    INNER JOIN sys.index_columns AS k ON k.object_id = i.object_id AND k.index_id = i.index_id AND k.key_ordinal > 0
    WHERE i.object_id = OBJECT_ID(@table) AND i.is_unique = 1 AND i.has_filter = 0 AND i.is_disabled = 0
    GROUP BY i.index_id
    HAVING COUNT(*) = 1
) AS u;
GO
-- fit.go, UserRows
SET LOCK_TIMEOUT 5000;
GO
-- migrate.go, bookkeeping
IF SCHEMA_ID(N'sqlwriter') IS NULL
    EXEC (N'CREATE SCHEMA sqlwriter AUTHORIZATION dbo');
IF OBJECT_ID(N'sqlwriter.migration', N'U') IS NULL
    CREATE TABLE sqlwriter.migration (
        number int NOT NULL,
        name nvarchar(200) NOT NULL,
        checksum char(64) NOT NULL,
        applied_at datetime2(3) NOT NULL DEFAULT SYSUTCDATETIME(),
        applied_by nvarchar(256) NOT NULL DEFAULT SUSER_SNAME(),
        CONSTRAINT pk_migration PRIMARY KEY (number)
    );
GO
-- migrate.go, lockMigrations
DECLARE @result int;
EXEC @result = sp_getapplock
    @Resource = N'sqlwriter.migrate', @LockMode = N'Exclusive', @LockOwner = N'Transaction', @LockTimeout = 60000;
SELECT @result AS result;
GO
-- migrate.go, lockForScript
DECLARE @result int;
EXEC @result = sp_getapplock
    @Resource = N'sqlwriter.migrate', @LockMode = N'Exclusive', @LockOwner = N'Transaction', @LockTimeout = 60000;
IF @result < 0
    THROW 52744, N'another migration is running', 1;
GO
-- migrate.go, requireTransaction
IF @@TRANCOUNT = 0
    THROW 52744, N'an earlier batch failed: nothing was changed', 1;
GO
-- migrate.go, recordMigration
INSERT INTO sqlwriter.migration (number, name, checksum) VALUES (@number, @name, @checksum);
GO
-- migrate.go, chooseMapping
UPDATE sqlwriter.mapping SET chosen_at = SYSUTCDATETIME() WHERE version = @version;
IF @@ROWCOUNT = 0
    INSERT INTO sqlwriter.mapping (version, columns) VALUES (@version, @columns);
GO
-- migrate.go, sessionOptions
SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
GO
-- migrate.go, record
SELECT number, name, checksum, applied_at FROM sqlwriter.migration ORDER BY number;
GO
-- migrate.go, MigrationStatus
SELECT OBJECT_ID(N'sqlwriter.migration', N'U');
GO
-- migrate.go, MigrationScript
IF @@TRANCOUNT = 0
    THROW 52744, N'an earlier batch failed: nothing was changed', 1;
COMMIT TRANSACTION;
GO;
GO
-- procedures.go, ProcedureState
SELECT OBJECT_ID(@name, N'P');
GO
-- procedures.go, installed
SELECT OBJECT_ID(N'sqlwriter.procedure_set', N'U');
GO
-- procedures.go, installed
SELECT s.installed_at FROM sqlwriter.procedure_set AS s WHERE s.set_hash = @hash;
GO
-- procedures.go, installed
SELECT TOP (1) s.set_hash, s.inputs FROM sqlwriter.procedure_set AS s ORDER BY s.installed_at DESC;
GO
-- procedures.go, install
SELECT OBJECT_ID(@name, N'P');
GO
-- procedures.go, recordProcedures
INSERT INTO sqlwriter.procedure_set (set_hash, inputs)
SELECT @hash, @inputs
WHERE NOT EXISTS (SELECT 1 FROM sqlwriter.procedure_set AS s WHERE s.set_hash = @hash);
GO
-- procedures_check.go, inspectProcedures
SELECT OBJECTPROPERTY(OBJECT_ID(@name), N'ExecIsQuotedIdentOn');
GO
-- procedures_check.go, owner
SELECT CASE WHEN @@VERSION LIKE N'Microsoft%' THEN USER_NAME(OBJECTPROPERTY(OBJECT_ID(@name), N'OwnerId')) END;
GO
-- procedures_check.go, inspectPreview
SELECT OBJECT_ID(@name, N'P');
GO
-- prune.go, Prune
DELETE FROM sqlwriter.procedure_set WHERE set_hash = @set;
GO
-- prune.go, unused
SELECT
    s.set_hash, SCHEMA_NAME(p.schema_id) + N'.' + p.name AS procedure_name, s.used_on,
    N'DROP PROCEDURE ' + SCHEMA_NAME(p.schema_id) + N'.' + p.name AS drop_statement
FROM sqlwriter.procedure_set AS s
INNER JOIN sys.procedures AS p ON RIGHT(p.name, 13) = N'_' + s.set_hash
WHERE
    s.set_hash <> @set AND s.used_on < DATEADD(DAY, -@days, CAST(SYSUTCDATETIME() AS date))
    AND SCHEMA_NAME(p.schema_id) IN (N'sqlwriter', N'sqlwriter_preview')
ORDER BY s.set_hash, procedure_name;
GO
-- sample.go, makeSample
SELECT OBJECT_ID(@table, N'U'), OBJECT_ID(@key, N'PK');
GO
-- schema.go, inspectServer
SELECT @@VERSION, d.compatibility_level FROM sys.databases AS d WHERE d.name = DB_NAME();
GO
-- schema.go, inspectOwnRights
SELECT OBJECT_ID(@table);
GO
-- schema.go, checkUnique
SELECT
    COALESCE(MAX(CASE WHEN k.key_ordinal = 2 THEN COL_NAME(k.object_id, k.column_id) END), ''),
    COALESCE(MAX(CASE WHEN k.partition_ordinal = 1 THEN COL_NAME(k.object_id, k.column_id) END), '')
FROM sys.indexes AS i
INNER JOIN sys.index_columns AS k ON k.object_id = i.object_id AND k.index_id = i.index_id
WHERE i.object_id = OBJECT_ID(@table) AND i.is_unique = 1 AND i.has_filter = 0 AND i.is_disabled = 0
GROUP BY i.index_id
HAVING MAX(CASE WHEN k.key_ordinal = 1 THEN COL_NAME(k.object_id, k.column_id) END) = @key AND MAX(k.key_ordinal) <= 2;
GO
-- schema.go, hasRight
SELECT HAS_PERMS_BY_NAME(@table, N'OBJECT', @right);
GO
-- schema.go, hasRightOnColumns
SELECT HAS_PERMS_BY_NAME(@table, N'OBJECT', @right, @column, N'COLUMN');
GO
-- schema.go, noteTriggers
SELECT g.name, g.is_disabled, g.is_instead_of_trigger
FROM sys.triggers AS g WHERE g.parent_id = OBJECT_ID(@table) ORDER BY g.name;
GO
-- setup.go, hasGrant
SELECT
    CASE
        WHEN HAS_PERMS_BY_NAME(DB_NAME(), N'DATABASE', N'CONTROL') = 1 THEN 1
        WHEN @grants = 0 THEN HAS_PERMS_BY_NAME(COALESCE(NULLIF(@on, N''), DB_NAME()), @class, @right)
        WHEN HAS_PERMS_BY_NAME(@on, @class, N'CONTROL') = 1 THEN 1
        ELSE (
            SELECT COUNT(*) FROM sys.database_permissions AS p
            WHERE
                p.major_id = OBJECT_ID(@on) AND p.permission_name = @right AND p.state = 'W'
                AND p.grantee_principal_id = DATABASE_PRINCIPAL_ID()
        )
    END;
GO
