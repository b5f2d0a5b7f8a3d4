-- IVCE_DTL's upsert as the Azure SQL output binding sends it (SqlAsyncCollector.cs of azure-functions-sql-extension): an object
-- per row, its members named as the columns.
WITH cte AS (
    SELECT *
    FROM OPENJSON(@rowData) WITH (IVCE_DTL_UID bigint, {{list .Detail "NAME TYPE"}})
)
MERGE INTO dbo.IVCE_DTL WITH (HOLDLOCK) AS ExistingData
USING cte AS NewData
ON ExistingData.IVCE_DTL_UID = NewData.IVCE_DTL_UID
WHEN MATCHED THEN
    UPDATE SET IVCE_DTL_UID = NewData.IVCE_DTL_UID, {{list .Detail "NAME = NewData.NAME"}}
WHEN NOT MATCHED THEN
    INSERT (IVCE_DTL_UID, {{list .Detail "NAME"}})
    VALUES (NewData.IVCE_DTL_UID, {{list .Detail "NewData.NAME"}});
