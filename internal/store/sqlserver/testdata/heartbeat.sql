-- Made by sqlwriterctl migrate up, one set for each build and settings file (sqlwriter.procedure_set).
CREATE PROCEDURE sqlwriter.heartbeat_hash
    @sys_name nvarchar(256),
    @database_id varchar(36),
    @number bigint,
    @take_over bit
AS
BEGIN
    -- begin
    -- Guarantees: an error ends the whole request and undoes it. A wait for a lock is bounded. In a deadlock the
    -- user's own programs win.
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    SET LOCK_TIMEOUT 5000;
    SET DEADLOCK_PRIORITY LOW;
    -- heartbeat_variables
    DECLARE @committed_id varchar(36), @committed bigint, @note nvarchar(400);
    -- transaction
    -- Guarantees: all or nothing after any error. With XACT_ABORT alone a RAISERROR of a user's trigger would not
    -- end the transaction, and the earlier statements would be committed.
    BEGIN TRY
        BEGIN TRANSACTION;
        -- heartbeat
        -- Guarantees: the environment's number grows and is not below the database's clock in milliseconds since 1970.
        -- The row must be the one that the control document has.
        -- If the control document has none, the statements add a row with a new id, or leave the number of an existing row.
        -- With @take_over, an operator's command, any row gets a new id and a number above the control document's.
        DECLARE @clock bigint = DATEDIFF_BIG(MILLISECOND, '1970-01-01', SYSUTCDATETIME());
        DECLARE @floor bigint = CASE WHEN @number >= @clock THEN @number + 1 ELSE @clock END;
        UPDATE h
        SET
            number = CASE
                WHEN @number = 0 AND @take_over = 0 THEN h.number
                WHEN h.number >= @floor THEN h.number + 1
                ELSE @floor
            END,
            database_id = CASE WHEN @take_over = 1 THEN NEWID() ELSE h.database_id END,
            raised_at = SYSUTCDATETIME()
        FROM sqlwriter.heartbeat AS h
        WHERE
            h.sys_name = @sys_name
            AND (
                @number = 0 OR @take_over = 1
                OR (LOWER(CAST(h.database_id AS varchar(36))) = @database_id AND h.number >= @number)
            );
        IF @@ROWCOUNT = 0
            BEGIN
                IF @take_over = 0 AND @number > 0
                    BEGIN
                        SELECT
                            @committed_id = LOWER(CAST(h.database_id AS varchar(36))),
                            @committed = h.number
                        FROM sqlwriter.heartbeat AS h
                        WHERE h.sys_name = @sys_name;
                        SET @note = CONCAT(N'sqlwriter: heartbeat ', @committed, N' ', @committed_id);
                        IF @committed_id = @database_id
                            THROW 52745, @note, 1;
                        THROW 52746, @note, 1;
                    END;
                INSERT INTO sqlwriter.heartbeat (sys_name, database_id, number, raised_at)
                VALUES (@sys_name, NEWID(), @floor, SYSUTCDATETIME());
            END;
        SELECT
            @committed_id = LOWER(CAST(h.database_id AS varchar(36))),
            @committed = h.number
        FROM sqlwriter.heartbeat AS h
        WHERE h.sys_name = @sys_name;
        -- commit
        COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @@TRANCOUNT > 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
    -- heartbeat_answer
    -- Guarantees: the answer is the committed row.
    SELECT
        @committed_id AS database_id,
        @committed AS number;
END;
