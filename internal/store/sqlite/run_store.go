package sqlite

import (
	"fmt"
	"strings"

	"sqlwriter/internal/run"
	"sqlwriter/internal/store/shared"
)

func runDialect() shared.RunDialect {
	return shared.RunDialect{
		Dialect: dialect(), Batch: "sqlwriter_batch", BatchItem: "sqlwriter_batch_item", Worker: "sqlwriter_worker",
		ErrorDetail: "sqlwriter_error_detail",
		AgoFormat:   "strftime('%%Y-%%m-%%dT%%H:%%M:%%fZ', 'now', (-%s / 1000.0) || ' seconds')",
		InFormat:    "strftime('%%Y-%%m-%%dT%%H:%%M:%%fZ', 'now', (%s / 1000.0) || ' seconds')",
		ListOf:      listOf, HashFormat: "%s",
	}
}

// listOf reads a JSON array of arrays. The values keep their JSON types.
func listOf(parameter string, columns []string) string {
	var b strings.Builder
	for i, c := range columns {
		name, _, _ := strings.Cut(c, " ")
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "e.value ->> %d AS %s", i, name)
	}
	return "(SELECT " + b.String() + " FROM json_each(" + parameter + ") AS e)"
}

// RunStore returns the run store of an environment. Codes are those of AuditLog, or of run.Store.
func (s *Store) RunStore(sysName string) run.Store {
	return shared.NewRunStore(s.runEngine(sysName))
}

func (s *Store) runEngine(sysName string) shared.RunEngine {
	return shared.RunEngine{
		Engine: s.engine(sysName), RunDialect: runDialect(),
	}
}
