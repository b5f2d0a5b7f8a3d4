-- migrate.go, bookkeeping
IF SCHEMA_ID(N'sqlwriter') IS NULL
    EXEC (N'CREATE SCHEMA sqlwriter');
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
-- migrate.go, recordMigration
INSERT INTO sqlwriter.migration (number, name, checksum) VALUES (@number, @name, @checksum);
GO
-- migrate.go, migrateIn
SET XACT_ABORT ON;
IF SCHEMA_ID(N'sqlwriter') IS NULL
    EXEC (N'CREATE SCHEMA sqlwriter');
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
-- migrate.go, migrationsDone
SELECT number, name, checksum, applied_at FROM sqlwriter.migration ORDER BY number;
GO
-- migrate.go, MigrationStatus
SELECT OBJECT_ID(N'sqlwriter.migration', N'U');
GO
-- schema.go, selectColumns
SELECT
    c.COLUMN_NAME, LOWER(c.DATA_TYPE), COALESCE(c.CHARACTER_MAXIMUM_LENGTH, 0), COALESCE(c.NUMERIC_PRECISION, 0),
    COALESCE(c.NUMERIC_SCALE, c.DATETIME_PRECISION, 0), CASE WHEN c.IS_NULLABLE = 'YES' THEN 1 ELSE 0 END,
    CASE WHEN c.COLUMN_DEFAULT IS NULL THEN 0 ELSE 1 END,
    COALESCE(COLUMNPROPERTY(OBJECT_ID(@table), c.COLUMN_NAME, 'IsComputed'), 0),
    COALESCE(COLUMNPROPERTY(OBJECT_ID(@table), c.COLUMN_NAME, 'IsIdentity'), 0),
    COALESCE(c.COLLATION_NAME, '')
FROM INFORMATION_SCHEMA.COLUMNS AS c
WHERE c.TABLE_SCHEMA = @schema AND c.TABLE_NAME = @name
ORDER BY c.ORDINAL_POSITION;
GO
-- schema.go, checkUnique
SELECT COUNT(*)
FROM sys.indexes AS i
INNER JOIN sys.index_columns AS k ON k.object_id = i.object_id AND k.index_id = i.index_id
WHERE
    i.object_id = OBJECT_ID(@table) AND i.is_unique = 1 AND k.key_ordinal = 1
    AND COL_NAME(k.object_id, k.column_id) = @key
    AND NOT EXISTS (
        SELECT 1 FROM sys.index_columns AS o
        WHERE o.object_id = k.object_id AND o.index_id = k.index_id AND o.key_ordinal > 1
    );
GO
-- schema.go, checkRights
SELECT HAS_PERMS_BY_NAME(@table, N'OBJECT', @right);
GO
-- schema.go, noteTriggers
SELECT g.name, g.is_disabled, g.is_instead_of_trigger
FROM sys.triggers AS g WHERE g.parent_id = OBJECT_ID(@table) ORDER BY g.name;
GO
