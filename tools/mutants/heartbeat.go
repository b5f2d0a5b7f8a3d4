package main

// heartbeatTable are the mutants of Sink.Heartbeat and of the preview that stands for it.
func heartbeatTable() []mutant {
	const (
		sqlite    = "internal/sqlite"
		sqlserver = "internal/sqlserver"
		raises    = "TestSink/a_heartbeat_makes_its_environment's_row,_then_raises_it_by_one,_for_others_to_see"
	)
	return []mutant{
		{
			"a heartbeat raises nothing", sqlite + "/sql/heartbeat.sql", "number = number + 1", "number = number", sqlite, raises,
		},
		{
			"all environments share a heartbeat", sqlite + "/heartbeat.go", "s.write[stHeartbeat], known.SysName)", "s.write[stHeartbeat], \"\")", sqlite, raises,
		},
		{
			"a heartbeat waits for the end of another request", sqlite + "/heartbeat.go",
			"context.WithTimeout(ctx, s.busyTimeout)", "context.WithTimeout(ctx, 1<<60)",
			sqlite, "TestAHeartbeatWaitsForTheWritersConnectionNoLongerThanForAnotherProcess",
		},
		{
			"the caller's own deadline is somebody else's lock", sqlite + "/heartbeat.go", " && ctx.Err() == nil {", " {",
			sqlite, "TestAHeartbeatWaitsForTheWritersConnectionNoLongerThanForAnotherProcess",
		},
		{
			"a read-only file is any error", sqlite + "/heartbeat.go", "ok && code&primaryMask == sqlite3.SQLITE_READONLY", "ok && code < 0",
			sqlite, "TestAHeartbeatSeesAReadOnlyFile",
		},
		{
			"the check at the start does not know the heartbeat", sqlite + "/classify.go", "		stHeartbeat,\n", "", sqlite, "TestTheCheckKnowsTheHeartbeat",
		},
		{
			"a preview without items is no request", sqlite + "/apply.go", "len(items) == 0 && mode != writer.Preview", "len(items) == 0",
			sqlite, "TestSink/a_preview_without_items_misses_the_tables_that_a_preview_needs",
		},
		{
			"the race for the heartbeat's row is a document's own", sqlserver + "/heartbeat.go", "	own.Condition = fault.NoCondition\n", "",
			sqlserver, "TestWhatAHeartbeatIsToldByTheServer",
		},
		{
			"a read-only server is any error", sqlserver + "/heartbeat.go", "		own.Code = codeReadOnly\n", "", sqlserver, "TestWhatAHeartbeatIsToldByTheServer",
		},
		{
			"a heartbeat does not commit", sqlserver + "/statements.go", "\"heartbeat\", \"commit\", \"heartbeat_answer\"}", "\"heartbeat\", \"heartbeat_answer\"}", sqlserver, "TestStatementsGolden",
		},
	}
}
