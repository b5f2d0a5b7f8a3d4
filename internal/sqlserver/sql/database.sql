-- Guarantees: nothing is written to a database that went back, or to another one: the environment's heartbeat has
-- the id and at least the number that the control document knows. Read without waiting for anybody who is raising
-- it.
IF @number > 0
    BEGIN
        DECLARE @there bigint, @same int;
        SELECT
            @there = h.number,
            @same = CASE WHEN h.database_id = @database_id THEN 1 ELSE 0 END
        FROM sqlwriter.heartbeat AS h WITH (NOLOCK)
        WHERE h.sys_name = @sys_name;
        IF @same IS NULL OR @same = 0
            THROW {{.OtherDatabase}}, N'sqlwriter: its heartbeat has not the id that is known', 1;
        IF @there < @number
            THROW {{.WentBack}}, N'sqlwriter: its heartbeat is behind the control document', 1;
    END;
