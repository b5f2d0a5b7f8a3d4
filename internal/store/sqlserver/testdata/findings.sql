-- adopted_at
-- When the ledger became complete: NULL while an adoption is running.
SELECT a.finished_at FROM sqlwriter.adoption AS a WHERE a.id = 1;
GO
-- comparison_begin
DECLARE @sys_name nvarchar(2000);
DECLARE @id varchar(64);
DECLARE @request nvarchar(max);
DECLARE @named bigint;
DECLARE @night bigint;
DECLARE @by nvarchar(2000);
DECLARE @why nvarchar(2000);
-- Begins a comparison, unless there is one with its id.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
INSERT INTO sqlwriter.comparison (
    sys_name, comparison_id, request, named, night, requested_by, why, step, position, counts, begun_at, moved_at
)
SELECT
    @sys_name, @id, @request, @named, @night, @by, @why, 0, '', '{}', SYSUTCDATETIME(), SYSUTCDATETIME()
WHERE NOT EXISTS (
    SELECT 1 FROM sqlwriter.comparison AS c WHERE c.sys_name = @sys_name AND c.comparison_id = @id
);
GO
-- comparison_count
DECLARE @counts nvarchar(max);
DECLARE @sys_name nvarchar(2000);
DECLARE @id varchar(64);
-- Stores what a comparison has counted, with the findings that had no room.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.comparison
SET counts = @counts
WHERE sys_name = @sys_name AND comparison_id = @id;
GO
-- comparison_last
DECLARE @limit bigint;
DECLARE @sys_name nvarchar(2000);
-- The comparison that began last of those that ended well and named no documents.
SELECT TOP (@limit)
    c.comparison_id, c.night, c.requested_by, c.why, c.step, c.position, c.counts, c.error, c.begun_at, c.moved_at,
    c.ended_at, '{}' AS request, SYSUTCDATETIME() AS read_at
FROM sqlwriter.comparison AS c
WHERE c.sys_name = @sys_name AND c.ended_at IS NOT NULL AND c.named = 0 AND c.error IS NULL
ORDER BY c.begun_at DESC, c.comparison_id DESC;
GO
-- comparison_next
DECLARE @limit bigint;
DECLARE @sys_name nvarchar(2000);
-- The comparison that was begun first of those that have not ended.
SELECT TOP (@limit)
    c.comparison_id, c.night, c.requested_by, c.why, c.step, c.position, c.counts, c.error, c.begun_at, c.moved_at,
    c.ended_at, c.request, SYSUTCDATETIME() AS read_at
FROM sqlwriter.comparison AS c
WHERE c.sys_name = @sys_name AND c.ended_at IS NULL
ORDER BY c.begun_at, c.comparison_id;
GO
-- comparison_save
DECLARE @position nvarchar(max);
DECLARE @error nvarchar(2000);
DECLARE @ended bigint;
DECLARE @sys_name nvarchar(2000);
DECLARE @id varchar(64);
DECLARE @step bigint;
-- Stores a step of a comparison, for whoever read the number of the step before. What it named is not needed any more
-- when it has ended.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.comparison
SET
    step = step + 1, position = @position, error = NULLIF(@error, ''), moved_at = SYSUTCDATETIME(),
    ended_at = CASE WHEN @ended = 1 THEN SYSUTCDATETIME() END,
    request = CASE WHEN @ended = 1 THEN '{}' ELSE request END
WHERE sys_name = @sys_name AND comparison_id = @id AND step = @step AND ended_at IS NULL;
GO
-- findings_count
DECLARE @sys_name nvarchar(2000);
-- How many findings each class has, and when the oldest was seen first.
SELECT f.class, COUNT(*) AS findings, MIN(f.first_seen) AS first_seen
FROM sqlwriter.finding AS f
WHERE f.sys_name = @sys_name AND f.sure = 1
GROUP BY f.class
ORDER BY f.class;
GO
-- findings_drop
DECLARE @sys_name nvarchar(2000);
DECLARE @class varchar(64);
DECLARE @line bigint;
DECLARE @key varbinary(max);
-- Deletes a finding that is no longer true, or a suspect that was none.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
DELETE FROM sqlwriter.finding
WHERE sys_name = @sys_name AND class = @class AND detail_id = @line AND document_key = CAST(@key AS binary(32));
GO
-- findings_insert
DECLARE @hashes varbinary(max);
DECLARE @rows nvarchar(max);
DECLARE @most bigint;
DECLARE @sys_name nvarchar(2000);
DECLARE @class varchar(64);
-- Adds findings and suspects of a class that have no row, while the class has room. A row of @rows: line, key,
-- class, environment, mark, sure, detail, mends, document.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
INSERT INTO sqlwriter.finding (
    sys_name, class, detail_id, document_key, document_id, first_seen, last_seen, mark, sure, detail, mends
)
SELECT
    n.listed_sys, n.listed_class, n.listed_line, n.document_key, n.listed_document,
    SYSUTCDATETIME(), SYSUTCDATETIME(), n.listed_mark, n.listed_sure, n.listed_detail, n.listed_mends
FROM (
    SELECT
        l.listed_sys, l.listed_class, l.listed_line, l.listed_mark, l.listed_sure, l.listed_detail, l.listed_mends,
        l.listed_document, CAST(SUBSTRING(@hashes, 32 * l.listed_key + 1, 32) AS binary(32)) AS document_key,
        ROW_NUMBER() OVER (ORDER BY l.listed_line, l.listed_key) AS place
    FROM
        OPENJSON (@rows) WITH (
            listed_line bigint '$[0]',
            listed_key int '$[1]',
            listed_class varchar(40) '$[2]',
            listed_sys nvarchar(256) '$[3]',
            listed_mark varchar(64) '$[4]',
            listed_sure bit '$[5]',
            listed_detail nvarchar(1000) '$[6]',
            listed_mends bit '$[7]',
            listed_document nvarchar(1023) '$[8]'
        ) AS l
    WHERE NOT EXISTS (
        SELECT 1 FROM sqlwriter.finding AS x
        WHERE
            x.sys_name = l.listed_sys COLLATE Latin1_General_BIN2 AND x.class = l.listed_class COLLATE Latin1_General_BIN2
            AND x.detail_id = l.listed_line
            AND x.document_key = CAST(SUBSTRING(@hashes, 32 * l.listed_key + 1, 32) AS binary(32))
    )
) AS n
WHERE
    n.place <= @most - (SELECT COUNT(*) FROM sqlwriter.finding AS o WHERE o.sys_name = @sys_name AND o.class = @class);
GO
-- findings_list
DECLARE @limit bigint;
DECLARE @sys_name nvarchar(2000);
DECLARE @class varchar(64);
DECLARE @from bigint;
DECLARE @to bigint;
DECLARE @after_key varbinary(max);
DECLARE @suspects bigint;
DECLARE @mends bigint;
-- Findings of a class, by line and key, and with @suspects its suspects. Of the line @from they have a key after
-- @after_key.
SELECT TOP (@limit)
    f.detail_id, f.document_id, f.first_seen, f.last_seen, f.mark, f.sure, f.detail, f.mends
FROM sqlwriter.finding AS f
WHERE
    f.sys_name = @sys_name AND f.class = @class
    AND f.detail_id >= @from AND f.detail_id <= @to
    AND (f.detail_id > @from OR f.document_key > CAST(@after_key AS binary(32)))
    AND (@suspects = 1 OR f.sure = 1) AND (@mends = 0 OR f.mends = 1)
ORDER BY f.detail_id, f.document_key;
GO
-- findings_see
DECLARE @rows nvarchar(max);
DECLARE @hashes varbinary(max);
-- Says of known findings and suspects what a look saw. A finding stays one. A row of @rows: line, key, class,
-- environment, mark, sure, detail, mends.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE f
SET
    last_seen = SYSUTCDATETIME(), mark = n.listed_mark, detail = n.listed_detail, mends = n.listed_mends,
    sure = CASE WHEN n.listed_sure = 1 THEN 1 ELSE f.sure END
FROM
    OPENJSON (@rows) WITH (
        listed_line bigint '$[0]',
        listed_key int '$[1]',
        listed_class varchar(40) '$[2]',
        listed_sys nvarchar(256) '$[3]',
        listed_mark varchar(64) '$[4]',
        listed_sure bit '$[5]',
        listed_detail nvarchar(1000) '$[6]',
        listed_mends bit '$[7]'
    ) AS n
CROSS JOIN sqlwriter.finding AS f
WHERE
    f.sys_name = n.listed_sys COLLATE Latin1_General_BIN2 AND f.class = n.listed_class COLLATE Latin1_General_BIN2
    AND f.detail_id = n.listed_line
    AND f.document_key = CAST(SUBSTRING(@hashes, 32 * n.listed_key + 1, 32) AS binary(32))
OPTION (LOOP JOIN, FORCE ORDER);
GO
