package sqltest

import (
	"fmt"
	"strings"

	"sqlwriter/internal/invoice"
	"sqlwriter/test/mapping"
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

// HostilePaths is the default mapping with hostile paths. The status keeps its path, and columns of one path still have
// one.
func HostilePaths() *invoice.Mapping { return mapping.Edited(hostilePaths) }

func hostilePaths(tables map[invoice.Table]*mapping.Table) {
	paths := map[any]string{}
	for _, table := range []invoice.Table{invoice.Detail, invoice.Tracking} {
		for _, e := range tables[table].Columns {
			from, there := e["from"]
			if !there || e["status"] != nil {
				continue
			}
			if paths[from] == "" {
				paths[from] = strings.ReplaceAll(hostile(len(paths)), "]", ")") // a mapping refuses elements of lists
			}
			e["from"] = paths[from]
		}
	}
}

// WithColumn is the default mapping with one more text in IVCE_TRKG_MSTR.
func WithColumn(name string) *invoice.Mapping {
	return mapping.Edited(func(tables map[invoice.Table]*mapping.Table) {
		t := tables[invoice.Tracking]
		t.Columns = append(t.Columns, mapping.Entry{"name": name, "from": "process_output.more", "type": "text(20)"})
	})
}

// HostileNames is HostilePaths with hostile names, at most MaxName long. The status has another name in each table.
func HostileNames() *invoice.Mapping {
	return mapping.Edited(func(tables map[invoice.Table]*mapping.Table) {
		hostilePaths(tables)
		for table, t := range tables {
			for i, e := range t.Columns {
				if table == invoice.Tracking {
					i++
				}
				name := hostile(i)
				if name == "a.B" {
					name = "A column" // a table's names differ without regard to case
				}
				e["name"] = name[:min(len(name), MaxName)]
			}
		}
	})
}
