-- Guarantees: nothing is written to a restored or replaced database. The heartbeat must have the id, and at
-- least the number, that the control document has. NOLOCK avoids a wait for a heartbeat in progress. The sender
-- reads number and id from the message.
IF @number > 0
    BEGIN
        DECLARE @there bigint, @there_id varchar(36);
        SELECT
            @there = h.number,
            @there_id = LOWER(CAST(h.database_id AS varchar(36)))
        FROM sqlwriter.heartbeat AS h WITH (NOLOCK)
        WHERE h.sys_name = @sys_name;
        SET @note = CONCAT(N'sqlwriter: heartbeat ', @there, N' ', @there_id);
        IF @there_id IS NULL OR @there_id <> COALESCE(@database_id, '')
            THROW {{.OtherDatabase}}, @note, 1;
        IF @there < @number
            THROW {{.WentBack}}, @note, 1;
    END;
