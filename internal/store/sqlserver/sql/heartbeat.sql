-- Guarantees: the environment's row has a number higher than before and no lower than the database's clock in
-- milliseconds since 1970 (steps of one by an older build never catch up), and only if the row is the one
-- that the control document knows. While that knows none a row is made, with an id of its own, or keeps its number.
-- With @take_over, an operator's word, the row is made or raised whatever it was, above what the control document
-- knows, and has a new id.
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
                    THROW {{.WentBack}}, @note, 1;
                THROW {{.OtherDatabase}}, @note, 1;
            END;
        INSERT INTO sqlwriter.heartbeat (sys_name, database_id, number, raised_at)
        VALUES (@sys_name, NEWID(), @floor, SYSUTCDATETIME());
    END;
SELECT
    @committed_id = LOWER(CAST(h.database_id AS varchar(36))),
    @committed = h.number
FROM sqlwriter.heartbeat AS h
WHERE h.sys_name = @sys_name;
