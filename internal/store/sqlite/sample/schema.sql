-- A stand-in for the user's two tables: the columns that we write, produced from the column table, and two that are
-- none of our business (IVCE_NUM, ITM_LDSC). Values wider than a column are refused, as nvarchar(n) refuses them.
CREATE TABLE IF NOT EXISTS {{.DetailTable}} (
    {{.DetailKey}} INTEGER PRIMARY KEY,
    "IVCE_NUM" TEXT,
    "ITM_LDSC" TEXT{{range .Detail}},
    {{.Name}} {{.Type}}{{.Check}}{{end}}
);
CREATE TABLE IF NOT EXISTS {{.TrackingTable}} (
    {{.TrackingKey}} INTEGER PRIMARY KEY{{range .Tracking}},
    {{.Name}} {{.Type}}{{.Check}}{{end}}
);
