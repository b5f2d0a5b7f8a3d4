-- Samples of the user's two tables: the columns that we write, from the column table, and two that we do not
-- use (IVCE_NUM, ITM_LDSC).
IF OBJECT_ID(N'{{.DetailTable}}', N'U') IS NULL
    CREATE TABLE {{.DetailTable}} (
        {{.DetailKey}} bigint NOT NULL,
        [IVCE_NUM] nvarchar(50) NULL,
        [ITM_LDSC] nvarchar(200) NULL{{range .Detail}},
        {{.Name}} {{.Type}} NULL{{end}},
        CONSTRAINT pk_sqlwriter_sample PRIMARY KEY ({{.DetailKey}})
    );
IF OBJECT_ID(N'{{.TrackingTable}}', N'U') IS NULL
    CREATE TABLE {{.TrackingTable}} (
        {{.TrackingKey}} bigint NOT NULL{{range .Tracking}},
        {{.Name}} {{.Type}} NULL{{end}},
        PRIMARY KEY ({{.TrackingKey}})
    );
