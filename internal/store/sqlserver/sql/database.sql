-- Guarantees: nothing is written to a database that went back, or to another one: the environment's heartbeat has
-- the id and at least the number that the control document knows. Read without waiting for anybody who is raising
-- it. The message is read by the sender: number and id.
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
