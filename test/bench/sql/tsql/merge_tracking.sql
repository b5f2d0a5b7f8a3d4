-- IVCE_TRKG_MSTR's upsert as the Azure SQL output binding sends it (SqlAsyncCollector.cs of azure-functions-sql-extension): an object
-- per row, its members named as the columns.
WITH cte AS (
    SELECT *
    FROM OPENJSON(@rowData) WITH (IVCE_DTL_UID bigint, {{list .Tracking "NAME TYPE"}})
)
MERGE INTO dbo.IVCE_TRKG_MSTR WITH (HOLDLOCK) AS ExistingData
USING cte AS NewData
ON ExistingData.IVCE_DTL_UID = NewData.IVCE_DTL_UID
WHEN MATCHED THEN
    UPDATE SET IVCE_DTL_UID = NewData.IVCE_DTL_UID, {{list .Tracking "NAME = NewData.NAME"}}
WHEN NOT MATCHED THEN
    INSERT (IVCE_DTL_UID, {{list .Tracking "NAME"}})
    VALUES (NewData.IVCE_DTL_UID, {{list .Tracking "NewData.NAME"}});
