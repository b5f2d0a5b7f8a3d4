package sqlserver

import (
	"fmt"
	"strings"

	"sqlwriter/internal/run"
	"sqlwriter/internal/store/shared"
)

func (t tables) runDialect() shared.RunDialect {
	return shared.RunDialect{
		Dialect: t.dialect(), Batch: "sqlwriter.batch", BatchItem: "sqlwriter.batch_item", Worker: "sqlwriter.worker",
		ErrorDetail: "sqlwriter.error_detail",
		AgoFormat:   "CAST(DATEADD(MILLISECOND, -%s, SYSUTCDATETIME()) AS datetime2(3))",
		InFormat:    "CAST(DATEADD(MILLISECOND, %s, SYSUTCDATETIME()) AS datetime2(3))",
		ListOf:      listOf, HashFormat: "CAST(%s AS binary(32))", UpdateByAlias: true, ForceOrder: "\nOPTION (LOOP JOIN, FORCE ORDER)",
	}
}

func listOf(parameter string, columns []string) string {
	typed := make([]string, len(columns))
	for i, c := range columns {
		typed[i] = fmt.Sprintf("        %s '$[%d]'", c, i)
	}
	return "OPENJSON (" + parameter + ") WITH (\n" + strings.Join(typed, ",\n") + "\n    )"
}

// RunStore returns the run store of an environment. Codes are those of classify, or of run.Store.
func (s *Store) RunStore(sysName string) run.Store {
	return shared.NewRunStore(s.runEngine(sysName))
}

func (s *Store) runEngine(sysName string) shared.RunEngine {
	return shared.RunEngine{
		Engine: s.engine(sysName), RunDialect: s.tables.runDialect(),
	}
}
