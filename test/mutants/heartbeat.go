package main

// heartbeatTable are the mutants of Sink.Heartbeat, of the preview that stands for it, and of what refuses a database that went back.
func heartbeatTable() []mutant {
	const (
		sqlite    = "internal/store/sqlite"
		sqlserver = "internal/store/sqlserver"
		breaker   = "internal/breaker"
		beat      = breaker + "/heartbeat.go"
		text      = sqlite + "/sql/heartbeat.sql"
		raises    = "TestSink/a_heartbeat_makes_its_environment's_row,_then_raises_it,_for_others_to_see"
		isTime    = "TestSink/a_heartbeat's_number_is_the_time,_and_one_more_than_a_number_that_is_ahead_of_it"
		refuses   = "TestSink/a_heartbeat_refuses_a_database_that_went_back,_and_leaves_it_as_it_is"
		keeps     = "TestSink/a_heartbeat_that_knows_nothing_commits_and_leaves_a_number_as_it_is"
		locks     = "TestALockOnTheHeartbeatStopsNobodyWhileDocumentsAreApplied"
		takes     = "TestSink/a_takeover_gives_the_row_a_new_id_and_a_number_above_all_that_is_known"
		writes    = "TestSink/a_write_to_a_database_that_went_back_is_refused,_whatever_is_written,_and_a_preview_is_not"
		stops     = "TestADatabaseThatWentBackStopsAtOnceAndEndsByItself"
		forced    = "TestOnlyAForcedResumeAcceptsADatabaseThatWentBack"
	)
	return []mutant{
		{"a heartbeat raises nothing", text, "iif(?4, max(number + 1, excluded.number), number)", "number", sqlite, raises},
		{"a heartbeat raises what it did not compare", sqlite + "/heartbeat.go", "force || known.Number > 0).Scan", "force || known.Number >= 0).Scan", sqlite, keeps},
		{"all environments share a heartbeat", sqlite + "/heartbeat.go", "s.write[stHeartbeat], known.SysName, above", "s.write[stHeartbeat], \"\", above", sqlite, raises},
		{"an older build climbs above what is known", text, "CAST(unixepoch('subsec') * 1000 AS INTEGER)", "1", sqlite, isTime},
		{"a heartbeat raises what it should refuse", sqlite + "/heartbeat.go", "	if force {\n		above", "	if known.Number > 0 {\n		above", sqlite, refuses},
		{"a takeover leaves the id", text, "database_id = iif(?3, excluded.database_id, database_id)", "database_id = database_id", sqlite, takes},
		{"a takeover goes by the row alone", text, "max(?2 + 1, ", "max(0 * ?2, ", sqlite, takes},
		{"a write does not compare", sqlite + "/apply.go", "	if r.mode != commit.Preview {\n		if err := checkHeartbeat", "	if r.mode == \"\" {\n		if err := checkHeartbeat", sqlite, writes},
		{"a rewrite does not compare", sqlite + "/apply.go", "	if r.mode != commit.Preview {\n		if err := checkHeartbeat", "	if r.mode == commit.Write {\n		if err := checkHeartbeat", sqlite, writes},
		{"a preview is refused", sqlite + "/apply.go", "	if r.mode != commit.Preview {\n		if err := checkHeartbeat", "	if r.mode != \"\" {\n		if err := checkHeartbeat", sqlite, writes},
		{"a copy with a lower number passes", beat, "	case row.Number < known.Number:\n", "	case row.Number < 0:\n", sqlite, writes},
		{"another database passes", beat, "	case row.DatabaseID != known.DatabaseID:\n", "	case row.Number < 0:\n", sqlite, writes},
		// What the breaker makes of it.
		{"a refusal is an outage like any other", breaker + "/breaker.go", "	case Refused(err):\n		b.openForRefusal(ctx, known, err, false)\n		return err\n", "", breaker, "TestARequestFromBeforeATakeoverStopsNobody"},
		{"a refused heartbeat stops nobody at once", beat, "	if Refused(err) {\n		b.openForRefusal(", "	if Refused(err) && probe {\n		b.openForRefusal(", breaker, stops},
		{"a refused probe leaves an outage what it was", beat, "		b.update(ctx, b.failure(err, probe))\n", "		b.update(ctx, b.failure(err, false))\n", breaker, "TestAProbeFindsADatabaseThatWentBack"},
		{"a request from before a takeover stops everybody", beat, "is.DatabaseID == known.DatabaseID", "is.SysName != \"\"", breaker, "TestARequestFromBeforeATakeoverStopsNobody"},
		{"a heartbeat compares with what was known seconds ago", beat, "	b.shared.reload(ctx)\n	if s := ", "	if s := ", breaker, "TestAHeartbeatIsNotComparedWithAnOldControlDocument"},
		{"an instance that cannot read the control document raises", beat, "	if b.shared.isUnread() {\n", "	if false {\n", breaker, "TestWithoutTheControlDocumentNothingIsRaised"},
		{"an instance that cannot write the control document compares with an old one", breaker + "/shared.go", "		s.control.Heartbeat = c.Heartbeat\n", "", breaker, "TestWhoCannotWriteTheControlDocumentComparesAllTheSame"},
		{"a heartbeat without the control document takes each database for well", beat, "	if err == nil && row.Number > 0 {\n", "	if false {\n", breaker, "TestWithoutTheControlDocumentNothingIsRaised"},
		{"a success is told beside an open breaker", beat, "(!probe || s.HeldBy", "probe && (s.HeldBy", breaker, "TestASuccessIsNotToldBesideAnOpenBreaker"},
		{"a claim that was not written is probed with", beat, " || s.due(b.o.Now(), b.o.Instance)) {", ") {", breaker, "TestAClaimThatWasNotWrittenIsNotProbedWith"},
		{"a claim that was not written is probed with beside another's", beat, "!probe || s.HeldBy != b.o.Instance || ", "!probe || ", breaker, "TestAClaimThatWasNotWrittenIsNotProbedWith"},
		{"a probe without its claim is a failure of the database", beat, " && !Refused(err) && !IsRefusal(err) {", " && !Refused(err) {", breaker, "TestAClaimThatWasNotWrittenIsNotProbedWith"},
		{"a number in the control document goes back", breaker + "/control.go", " && c.Heartbeat.Number < row.Number", "", breaker, "TestTheLargerNumberWins"},
		{"a heartbeat takes over another database's place", breaker + "/control.go", "(c.Heartbeat.DatabaseID == row.DatabaseID && c.Heartbeat.Number < row.Number)", "c.Heartbeat.Number < row.Number", breaker, "TestTheLargerNumberWins"},
		{"success is told without a heartbeat", breaker + "/proof.go", "		row, err = b.raise(ctx, false)\n", "", breaker, "TestTheHeartbeatIsRaisedBeforeASuccessIsTold"},
		{"success is told although the heartbeat failed", breaker + "/proof.go", "		success = err == nil\n", "		_ = err\n", breaker, "TestTheHeartbeatIsRaisedBeforeASuccessIsTold"},
		{"an outage hides a refusal", breaker + "/state.go", "	if s.RefusesDatabase() && !refusedCode(in.code) {\n", "	if false {\n", breaker, "TestAnOutageDoesNotHideARefusal"},
		{"a locked heartbeat is an outage beside documents that are applied", breaker + "/breaker.go", "		if b.lockedOut() && b.appliedSince(ctx, begin) {\n", "		if begin.IsZero() {\n", breaker, locks},
		{"each success waits for a locked heartbeat", breaker + "/proof.go", "success && !b.lockedOut() {", "success {", breaker, locks},
		{"a tick from before a takeover stops everybody", beat, "	case ctx.Err() != nil, Refused(err), IsRefusal(err):\n", "	case ctx.Err() != nil, IsRefusal(err):\n", breaker, "TestAHeartbeatFromBeforeATakeoverStopsNobody"},
		{"a probe from before a takeover stops everybody", beat, "ctx.Err() == nil && !Refused(err) && !IsRefusal(err)", "ctx.Err() == nil && !IsRefusal(err)", breaker, "TestAHeartbeatFromBeforeATakeoverStopsNobody"},
		{"a takeover takes what is not refused", breaker + "/operator.go", "	if Refused(err) {\n", "	if true {\n", breaker, "TestForceTakesOverOnlyWhatIsRefused"},
		{"a takeover does not see another's", breaker + "/operator.go", "		case c.Heartbeat != was:\n", "		case c.Heartbeat != was && meanwhile:\n", breaker, "TestTwoOperatorsForceAtOnce"},
		{"an older build probes a database that was refused", breaker + "/state.go", "		s.OpenUntil = at.Add(refusalOffset)\n", "		s.OpenUntil = at\n", breaker, "TestAnOlderBuildBeside"},
		{"an older build writes to a database that was refused", breaker + "/state.go", "refusalOffset = 100 * 365 * 24 * time.Hour", "refusalOffset = 0 * time.Hour", "test/scenario", "TestRow16"},
		{"a resume needs no force", breaker + "/operator.go", "if risk = nil; c.Breaker.RefusesDatabase() {", "if risk = nil; false {", breaker, forced},
		{"the control document does not learn of a takeover", breaker + "/operator.go", "		c.Heartbeat = row\n", "", breaker, forced},
		{"Health is ready beside a database that went back", "internal/app/status.go", "			r.Status = statusLive\n", "", "internal/app", "TestHealthIsNotReadyForADatabaseThatWentBack"},
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
			"the check at the start does not know the heartbeat", sqlite + "/classify.go", "		stHeartbeat, stHeartbeatRow,\n", "", sqlite, "TestTheCheckKnowsTheHeartbeat",
		},
		{
			"a preview without items is no request", sqlite + "/apply.go", "len(items) == 0 && mode != commit.Preview", "len(items) == 0",
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
