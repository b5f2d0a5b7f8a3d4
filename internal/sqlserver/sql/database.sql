-- Guarantees: nothing is written to a database that went back, or to another one: the environment's heartbeat has
-- the id and at least the number that the control document knows. Read without waiting for anybody who is raising
-- it.
IF @number > 0
    BEGIN
        DECLARE @there bigint, @there_id uniqueidentifier;
        SELECT
            @there = h.number,
            @there_id = h.database_id
        FROM sqlwriter.heartbeat AS h WITH (NOLOCK)
        WHERE h.sys_name = @sys_name;
        SET @note = CONCAT(N'sqlwriter: the heartbeat is ', @there, N' of ', LOWER(CAST(@there_id AS varchar(36))));
        IF @there_id IS NULL OR @there_id <> @database_id
            THROW {{.OtherDatabase}}, @note, 1;
        IF @there < @number
            THROW {{.WentBack}}, @note, 1;
    END;
