-- Samples of the user's two tables: the columns that we write, from the column table, and two that we do not
-- use (IVCE_NUM, ITM_LDSC). The checks refuse values that are too wide, as nvarchar(n) does.
CREATE TABLE IF NOT EXISTS {{.DetailTable}} (
    {{.DetailKey}} INTEGER CONSTRAINT pk_sqlwriter_sample PRIMARY KEY,
    "IVCE_NUM" TEXT,
    "ITM_LDSC" TEXT{{range .Detail}},
    {{.Name}} {{.Type}}{{.Check}}{{end}}
);
CREATE TABLE IF NOT EXISTS {{.TrackingTable}} (
    {{.TrackingKey}} INTEGER PRIMARY KEY{{range .Tracking}},
    {{.Name}} {{.Type}}{{.Check}}{{end}}
);
