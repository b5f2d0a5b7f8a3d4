-- One table's upsert as the Azure SQL output binding sends it (SqlAsyncCollector.cs of azure-functions-sql-extension):
-- an object per row, its members named as the columns.
WITH cte AS (
    SELECT *
    FROM OPENJSON(@rowData) WITH (
        IVCE_DTL_UID bigint{{range .Columns}},
        {{.Name}} {{.Type}}{{end}}
    )
)
MERGE INTO {{.Table}} WITH (HOLDLOCK) AS ExistingData
USING cte AS NewData
ON ExistingData.IVCE_DTL_UID = NewData.IVCE_DTL_UID
WHEN MATCHED THEN
    UPDATE SET
        IVCE_DTL_UID = NewData.IVCE_DTL_UID{{range .Columns}},
        {{.Name}} = NewData.{{.Name}}{{end}}
WHEN NOT MATCHED THEN
    INSERT (
        IVCE_DTL_UID{{range .Columns}},
        {{.Name}}{{end}}
    ) VALUES (
        NewData.IVCE_DTL_UID{{range .Columns}},
        NewData.{{.Name}}{{end}}
    );
