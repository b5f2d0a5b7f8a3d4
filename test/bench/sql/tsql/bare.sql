-- The bare write as text: one parameter, @request; the three statements and nothing around them.
-- The condition that is always true tells planners which take no hints that few rows come from the temp table: without
-- it one of them reads the whole of the user's tables.
SET NOCOUNT ON;
SET XACT_ABORT ON;
SELECT r.IVCE_DTL_UID, {{list .Document "i.NAME"}}, {{list .Line "r.NAME"}}
INTO #row
FROM OPENJSON(@request) WITH (
    lines nvarchar(max) '$[0]' AS JSON, {{list .Document "NAME TYPE '$[PLACE]'"}}
) AS i
CROSS APPLY OPENJSON(i.lines) WITH (
    IVCE_DTL_UID bigint '$[0]', {{list .Line "NAME TYPE '$[PLACE]'"}}
) AS r;
BEGIN TRANSACTION;
UPDATE d
SET {{list .Detail "NAME = s.NAME"}}
FROM #row AS s
INNER JOIN dbo.IVCE_DTL AS d ON d.IVCE_DTL_UID = s.IVCE_DTL_UID
WHERE s.IVCE_DTL_UID % 1 = 0
OPTION (LOOP JOIN, FORCE ORDER);
UPDATE t
SET {{list .Tracking "NAME = s.NAME"}}
FROM #row AS s
INNER JOIN dbo.IVCE_TRKG_MSTR AS t ON t.IVCE_DTL_UID = s.IVCE_DTL_UID
WHERE s.IVCE_DTL_UID % 1 = 0
OPTION (LOOP JOIN, FORCE ORDER);
INSERT INTO dbo.IVCE_TRKG_MSTR (IVCE_DTL_UID, {{list .Tracking "NAME"}})
SELECT s.IVCE_DTL_UID, {{list .Tracking "s.NAME"}}
FROM #row AS s
WHERE
    s.IVCE_DTL_UID % 1 = 0
    AND NOT EXISTS (SELECT 1 FROM dbo.IVCE_TRKG_MSTR AS t WHERE t.IVCE_DTL_UID = s.IVCE_DTL_UID);
COMMIT TRANSACTION;
