-- Made by sqlwriterctl migrate up, one set for each build and settings file (sqlwriter.procedure_set).
CREATE PROCEDURE sqlwriter.adopt_page_hash
    @rows nvarchar(max),
    @hashes varbinary(max),
    @run varchar(36),
    @from bigint,
    @advance bit,
    @to bigint,
    @counts nvarchar(max)
AS
BEGIN
    -- page
    -- Guarantees (newest wins): only a newer document, or another result of the same one, replaces a ledger row.
    -- Another result is a failure after content, content after a mark, or other content under the same hash
    -- version. A ledger row of hash version 0 proves nothing and is replaced too. The result must not have been
    -- read earlier.
    -- Rows that this product applied change only for a newer document.
    -- Rows and watermark are written together, and only while the run @run is at @from. A row of @rows: line,
    -- version, key, document, source_ts, hash, hash version, sys_name, outcome. Key and hash are places in @hashes,
    -- which has 32 bytes for each.
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    SET LOCK_TIMEOUT 5000;
    SET DEADLOCK_PRIORITY LOW;
    DECLARE @write_id uniqueidentifier = CAST(@run AS uniqueidentifier);
    CREATE TABLE #row (
        detail_id bigint NOT NULL PRIMARY KEY,
        version_us bigint NOT NULL,
        document_key binary(32) NOT NULL,
        document_id nvarchar(max) NOT NULL,
        source_ts bigint NOT NULL,
        content_hash binary(32) NULL,
        hash_version int NULL,
        sys_name nvarchar(256) COLLATE Latin1_General_BIN2 NOT NULL,
        outcome varchar(10) COLLATE Latin1_General_BIN2 NOT NULL
    );
    INSERT INTO #row (
        detail_id, version_us, document_key, document_id, source_ts, content_hash, hash_version, sys_name, outcome
    )
    SELECT
        r.detail_id, r.version_us, CAST(SUBSTRING(@hashes, 32 * r.document_key + 1, 32) AS binary(32)), r.document_id,
        r.source_ts, CAST(SUBSTRING(@hashes, 32 * r.content_hash + 1, 32) AS binary(32)), r.hash_version, r.sys_name,
        r.outcome
    FROM
        OPENJSON (@rows) WITH (
            detail_id bigint '$[0]',
            version_us bigint '$[1]',
            document_key int '$[2]',
            document_id nvarchar(max) '$[3]',
            source_ts bigint '$[4]',
            content_hash int '$[5]',
            hash_version int '$[6]',
            sys_name nvarchar(256) '$[7]',
            outcome varchar(10) '$[8]'
        ) AS r
    ORDER BY r.detail_id;
    BEGIN TRY
        BEGIN TRANSACTION;
        UPDATE l
        SET
            version_us = s.version_us,
            document_key = s.document_key,
            document_id = s.document_id,
            source_ts = s.source_ts,
            content_hash = s.content_hash,
            hash_version = s.hash_version,
            sys_name = s.sys_name,
            detail_row_hash = NULL,
            tracking_row_hash = NULL,
            outcome = s.outcome,
            write_id = @write_id,
            applied_at = SYSUTCDATETIME()
        FROM #row AS s
        INNER JOIN sqlwriter.ledger AS l ON l.detail_id = s.detail_id
        WHERE
            l.version_us < s.version_us
            OR (l.version_us = s.version_us AND l.document_key < s.document_key)
            OR (
                l.version_us = s.version_us AND l.document_key = s.document_key AND l.source_ts <= s.source_ts
                AND (
                    (s.outcome = 'failed' AND l.outcome <> 'failed')
                    OR (s.outcome <> 'failed' AND l.outcome = 'failed')
                    OR (
                        s.outcome <> 'failed' AND l.outcome <> 'failed'
                        AND (
                            (l.hash_version = s.hash_version AND l.content_hash <> s.content_hash)
                            OR (l.hash_version <> s.hash_version AND l.hash_version = 0)
                        )
                    )
                )
            )
        OPTION (LOOP JOIN, FORCE ORDER);
        INSERT INTO sqlwriter.ledger (
            detail_id, version_us, document_key, document_id, source_ts, content_hash, hash_version, sys_name, outcome,
            write_id, applied_at
        )
        SELECT
            s.detail_id, s.version_us, s.document_key, s.document_id, s.source_ts, s.content_hash, s.hash_version,
            s.sys_name, s.outcome, @write_id, SYSUTCDATETIME()
        FROM #row AS s
        WHERE NOT EXISTS (SELECT 1 FROM sqlwriter.ledger AS l WHERE l.detail_id = s.detail_id)
        ORDER BY s.detail_id
        OPTION (LOOP JOIN, FORCE ORDER);
        UPDATE a
        SET
            watermark = CASE WHEN @advance = 1 THEN @to ELSE a.watermark END,
            counts = CASE WHEN @advance = 1 THEN @counts ELSE a.counts END
        FROM sqlwriter.adoption AS a
        WHERE a.id = 1 AND a.phase = 'running' AND a.run_id = @run AND a.watermark = @from;
        IF @@ROWCOUNT <> 1
            BEGIN
                THROW 52742, N'sqlwriter: the state of the adoption changed after it was read', 1;
            END;
        COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @@TRANCOUNT > 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
END;
