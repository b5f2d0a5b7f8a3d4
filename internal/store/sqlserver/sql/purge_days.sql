-- Guarantees: nothing younger than {{.LeastRetention}} days is deleted, whoever calls.
DECLARE @before datetime2(3), @run varchar(64), @rows int = 0, @note nvarchar(400);
IF @days IS NULL OR @days < {{.LeastRetention}}
    BEGIN
        SET @note = CONCAT(N'sqlwriter: expected at least {{.LeastRetention}} days, found ', @days);
        THROW {{.RetentionDays}}, @note, 1;
    END;
SET @before = DATEADD(DAY, -@days, SYSUTCDATETIME());
