package sqlite

import (
	"fmt"
	"strings"

	"sqlwriter/internal/run"
	"sqlwriter/internal/store/shared"
)

// runWords are this engine's.
func runWords() shared.RunWords {
	return shared.RunWords{
		Words: words(), Batch: "sqlwriter_job", BatchItem: "sqlwriter_batch_item", Worker: "sqlwriter_worker",
		ErrorDetail: "sqlwriter_error_detail",
		AgoFormat:   "strftime('%%Y-%%m-%%dT%%H:%%M:%%fZ', 'now', (-%s / 1000.0) || ' seconds')",
		InFormat:    "strftime('%%Y-%%m-%%dT%%H:%%M:%%fZ', 'now', (%s / 1000.0) || ' seconds')",
		ListOf:      listOf, Late: "+",
	}
}

// listOf reads a JSON array of arrays. Its values have the types that JSON gives them.
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

// RunStore keeps an environment's books of runs in this file. Codes are those of Journal, or the port's.
func (s *Store) RunStore(sysName string) run.Store {
	return shared.NewRuns(shared.RunDialect{
		Dialect: s.dialect(sysName), RunWords: runWords(), Key: func(text string) any { return text },
	})
}
