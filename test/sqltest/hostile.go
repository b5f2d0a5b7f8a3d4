package sqltest

import (
	"fmt"
	"strings"

	"sqlwriter/internal/invoice"
)

// MaxName is the most UTF-16 units that a name of SQL Server may have.
const MaxName = 128

// hostile returns texts that SQL could take for something else: our own columns, one name in two cases, quotes, the
// end of a statement. Numbers beyond them have texts of 300 characters.
func hostile(n int) string {
	few := []string{
		"mark", "left_out", "position", "verdict", "detail_id", "d0", "l0", "c1", "a.B", "a.b",
		`"`, "]", "';--", "\U0001f600",
	}
	if n < len(few) {
		return few[n]
	}
	return fmt.Sprint(n, strings.Repeat(`"]p`, 100))[:300]
}

// HostilePaths is the column table with hostile paths. The status keeps its path. Columns of one path still have one.
func HostilePaths() []invoice.Column {
	columns, paths := invoice.Columns(), map[string]string{}
	for i, c := range columns {
		if c.Source != invoice.FromDocument || c.IsStatus() {
			continue
		}
		if paths[c.Path] == "" {
			paths[c.Path] = hostile(len(paths))
		}
		columns[i].Path = paths[c.Path]
	}
	return columns
}

// HostileNames is HostilePaths with hostile names, at most MaxName long. The status has another name in each table.
func HostileNames() []invoice.Column {
	columns, named := HostilePaths(), map[invoice.Table]int{invoice.Tracking: 1}
	for i, c := range columns {
		name := hostile(named[c.Table])
		if name == "a.B" {
			name = "A column" // a table's names differ without regard to case
		}
		columns[i].Name = name[:min(len(name), MaxName)]
		named[c.Table]++
	}
	return columns
}
