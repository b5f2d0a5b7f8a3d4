package main

// sqliteTable are mutants of how the embedded database runs a write.
func sqliteTable() []mutant {
	const (
		sqlite = "internal/sqlite"
	)
	return []mutant{
		{
			"SQLite compiles its statements for every request", sqlite + "/statements.go",
			"strings.TrimSpace(b.String())", `b.String() + "\n"`, sqlite, "TestStatementsAreCompiledOnceForAConnection",
		},
		{
			"a new connection has no temp tables", sqlite + "/prepared.go", "		_, err = script.Exec(nil)", "		_, err = script.Close(), error(nil)",
			sqlite, "TestAConnectionThatIsReplaced",
		},
		{
			"statements that could not be prepared stay so", sqlite + "/prepared.go",
			`			return nil, classify("sqlite: apply: "+name, err)`, `			p.done = done
			return nil, classify("sqlite: apply: "+name, err)`, sqlite, "TestARequestBeforeTheTables",
		},
		{
			"duplicates have the values of the main line", "internal/sqlstore/request.go", "if position < 2 {", "if position < 1 {",
			sqlite, "TestSink/10_duplicates",
		},
		{
			"a document's first line has the values of the one before", "internal/sqlstore/request.go", "if position < 2 {", "if position == 1 || doc == 0 {",
			sqlite, "TestSink/a_batch_of_100",
		},
	}
}
