-- SQL Writer: schema sqlwriter. Expand only; files that were run are left out.
-- Run it in the database of IVCE_DTL, by sqlcmd -b or another tool that stops at an error.
SET QUOTED_IDENTIFIER ON;
SET XACT_ABORT ON;
BEGIN TRANSACTION;
DECLARE @result int;
EXEC @result = sp_getapplock
    @Resource = N'sqlwriter.migrate', @LockMode = N'Exclusive', @LockOwner = N'Transaction', @LockTimeout = 60000;
IF @result < 0
    THROW 52744, N'another migration is running', 1;
GO
IF @@TRANCOUNT = 0
    THROW 52744, N'an earlier batch failed: nothing was changed', 1;
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
-- 0001_ledger
IF @@TRANCOUNT = 0
    THROW 52744, N'an earlier batch failed: nothing was changed', 1;
IF NOT EXISTS (SELECT 1 FROM sqlwriter.migration WHERE number = 1)
    BEGIN
        EXEC (N'
-- The ledger: which document each line was written from, for ever (never purged). One table serves idempotency, the
-- guard against older results, lost acknowledgements, the detection of edits and reconciliation (design.md section 4).
-- Keys and hashes are lower-case hex, compared byte by byte whatever the database''s collation.
CREATE TABLE sqlwriter.ledger (
    detail_id bigint NOT NULL,
    version_us bigint NOT NULL,
    document_key char(64) COLLATE Latin1_General_BIN2 NOT NULL,
    document_id nvarchar(1023) NOT NULL,
    source_ts bigint NOT NULL,
    content_hash char(64) COLLATE Latin1_General_BIN2 NULL,
    hash_version int NULL,
    row_hash char(64) COLLATE Latin1_General_BIN2 NULL,
    outcome varchar(10) COLLATE Latin1_General_BIN2 NOT NULL,
    write_id uniqueidentifier NOT NULL,
    applied_at datetime2(3) NOT NULL,
    CONSTRAINT pk_ledger PRIMARY KEY CLUSTERED (detail_id),
    CONSTRAINT ck_ledger_outcome CHECK (outcome IN (''applied'', ''failed'', ''adopted'')),
    CONSTRAINT ck_ledger_hash CHECK (
        (outcome = ''failed'' AND content_hash IS NULL AND hash_version IS NULL)
        OR (outcome <> ''failed'' AND content_hash IS NOT NULL AND hash_version IS NOT NULL)
    )
);
');
        INSERT INTO sqlwriter.migration (number, name, checksum)
        VALUES (1, N'0001_ledger', '81309a9ce699811e0aebd12db598993f7ffc4085ce81e9db09c1c05f60f10283');
    END;
GO
-- 0002_adoption
IF @@TRANCOUNT = 0
    THROW 52744, N'an earlier batch failed: nothing was changed', 1;
IF NOT EXISTS (SELECT 1 FROM sqlwriter.migration WHERE number = 2)
    BEGIN
        EXEC (N'
-- How far the adoption of a database with history is (internal/adopt): one row, or none while nothing was said. counts is
-- what the run has seen, as JSON; known, adopted and marked are counted here. A ledger that this product has filled before
-- it knew of adoption needs none.
CREATE TABLE sqlwriter.adoption (
    id int NOT NULL,
    phase varchar(10) COLLATE Latin1_General_BIN2 NOT NULL,
    run_id varchar(36) COLLATE Latin1_General_BIN2 NOT NULL,
    watermark bigint NOT NULL,
    counts nvarchar(max) NOT NULL,
    known bigint NOT NULL,
    adopted bigint NOT NULL,
    marked bigint NOT NULL,
    who nvarchar(256) NOT NULL,
    started_at datetime2(3) NOT NULL,
    finished_at datetime2(3) NULL,
    CONSTRAINT pk_adoption PRIMARY KEY (id),
    CONSTRAINT ck_adoption_one CHECK (id = 1),
    CONSTRAINT ck_adoption_phase CHECK (phase IN (''running'', ''done'', ''empty''))
);
INSERT INTO sqlwriter.adoption (
    id, phase, run_id, watermark, counts, known, adopted, marked, who, started_at, finished_at
)
SELECT
    1, ''empty'', '''', 0, N''{}'', 0, 0, 0, N''migration 0002: the ledger was in use'', SYSUTCDATETIME(), SYSUTCDATETIME()
WHERE EXISTS (SELECT 1 FROM sqlwriter.ledger);
');
        INSERT INTO sqlwriter.migration (number, name, checksum)
        VALUES (2, N'0002_adoption', 'f560c5e6f09b9b01900db66e5df5177b97d275b0939a65438e3ee67d02a3d644');
    END;
GO
-- 0003_operations
IF @@TRANCOUNT = 0
    THROW 52744, N'an earlier batch failed: nothing was changed', 1;
IF NOT EXISTS (SELECT 1 FROM sqlwriter.migration WHERE number = 3)
    BEGIN
        EXEC (N'
-- What operators did (audit_log, one entry for each action, never changed) and the long actions among it (run: one row,
-- from its request to its receipt). filter, counts and detail are JSON. heartbeat_at is when the run last said something.
-- All times are by the database''s clock, UTC. Statuses and kinds are not listed here: a later build may have more of them.
-- A run''s id is compared byte by byte whatever the database''s collation.
CREATE TABLE sqlwriter.run (
    run_id nvarchar(64) COLLATE Latin1_General_BIN2 NOT NULL,
    run_number bigint IDENTITY (1, 1) NOT NULL,
    kind nvarchar(40) NOT NULL,
    filter nvarchar(max) NULL,
    requested_by nvarchar(256) NOT NULL,
    why nvarchar(2000) NOT NULL,
    status varchar(20) COLLATE Latin1_General_BIN2 NOT NULL,
    cancel bit NOT NULL,
    counts nvarchar(max) NOT NULL,
    started_at datetime2(3) NOT NULL,
    ended_at datetime2(3) NULL,
    heartbeat_at datetime2(3) NOT NULL,
    CONSTRAINT pk_run PRIMARY KEY (run_id),
    CONSTRAINT uq_run_number UNIQUE (run_number)
);
CREATE TABLE sqlwriter.audit_log (
    audit_id bigint IDENTITY (1, 1) NOT NULL,
    done_at datetime2(3) NOT NULL,
    action nvarchar(40) NOT NULL,
    done_by nvarchar(256) NOT NULL,
    why nvarchar(2000) NOT NULL,
    subject nvarchar(1023) NOT NULL,
    detail nvarchar(max) NULL,
    CONSTRAINT pk_audit_log PRIMARY KEY (audit_id)
);
');
        INSERT INTO sqlwriter.migration (number, name, checksum)
        VALUES (3, N'0003_operations', 'dd5a01eb7d56dcc840c929b72bf1421b4f9408c3b08913eef636cdb6a1d770a4');
    END;
GO
IF @@TRANCOUNT = 0
    THROW 52744, N'an earlier batch failed: nothing was changed', 1;
COMMIT TRANSACTION;
GO
