package main

// statusTable are mutants of what operators are told of the app.
func statusTable() []mutant {
	const (
		pkg     = "internal/ops"
		counts  = pkg + "/counts.go"
		status  = pkg + "/status.go"
		runs    = pkg + "/run_state.go"
		planted = "TestEachPlantedFaultIsNamed"
		groups  = "TestCountsSayWhatWaitsLongestAndWhatFailsNow"
		silent  = "TestTheTimerIsSilentAfterTwoTicks"
		stays   = "TestWhyARunDoesNotGoOn"
	)
	return []mutant{
		{"old failures hide the latest", counts, "{[]invoice.Status{invoice.Failed}, true},", "{[]invoice.Status{invoice.Failed}, false},", pkg, "TestOldFailuresHideNoPoison"},
		{"the oldest is the one that changed least recently", counts, "!first.IsZero() && first.Before(changed)", "false", pkg, groups},
		{"poison is counted by the clock's hour", counts, "now.Sub(at) < time.Hour", "at.Truncate(time.Hour).Equal(now.Truncate(time.Hour))", pkg, groups},
		{"a person retries what waits for a dependency", counts, " && !deferred(g.Kind))", ")", pkg, groups},
		{"a group's command takes every group", counts, `g.Kind == "" || g.Code == "" || `, "", pkg, groups},
		{"a group's command has a code that is refused", counts, ` || err != nil || s.Code != g.Code`, ` || err == nil && s.Code != g.Code`, pkg, groups},
		{"the timer is silent after 20 ticks", status, "now.Sub(since) > 2*every", "now.Sub(since) > 20*every", pkg, silent},
		{"a new deployment's timer is silent before its first tick", status, "every, reason = minTick, ", "every, reason = 0, ", pkg, planted},
		{"a timer that is off since the beginning is only young", status, "d.Since.Before(since)", "d.Since.After(since)", pkg, planted},
		{"a tick by hand makes the next one late", counts, "max(now.Sub(last.At), minTick)", "now.Sub(last.At)", pkg, silent},
		{"a slow schedule is called silent", counts, "	if !last.At.IsZero() {\n", "	if false {\n", pkg, silent},
		{"old counts are hidden", status, "	if countsErr == nil && !counts.At.IsZero() {\n", "	if timer.State == DepOK {\n", pkg, silent},
		{"the flow does not name SQL at its first failure", pkg + "/flow.go", "sql.State == DepFailing {", "false {", pkg, planted},
		{"a document is not told that SQL fails", pkg + "/why.go", "	if sql.State != DepFailing {\n", "	if true {\n", pkg, planted},
		{"a document is not told that the timer is silent", pkg + "/why.go", "w.timer.State == DepSilent {", "false {", pkg, planted},
		{"a document is not told that the feed stands still", pkg + "/why.go", "case missed.Holds():", "case false:", pkg, planted},
		{"another environment asks for attention for ever", pkg + "/attention.go", "s.At.Sub(k.Since) < skippedNew", "true", pkg, planted},
		{"a reader who sees Cosmos DB fail does not say so", status, "case name == DepCosmos && fault", "case false && fault", pkg, planted},
		{"Cosmos DB is unknown although it does not answer", "internal/breaker/operator.go", "is := b.shared.whyLost(); is && ", "is := b.shared.whyLost(); false && is && ", "internal/breaker", "TestWithoutTheControlDocumentAnInstanceShowsWhatItSees"},
		{"a status waits for Cosmos DB and SQL in turn", status, "statusWithin + time.Second", "statusWithin + statusWithin", pkg, "TestAStatusWaitsShortlyForBoth"},
		{"what ends by itself is told at once", pkg + "/attention.go", ">= c.After", ">= min(0, c.After)", pkg, "TestTheLogTellsWhatLasts"},
		{"a new poison message has no beginning", pkg + "/attention.go", "g.Last.After(latest)", "latest.IsZero()", pkg, "TestEachNewPoisonMessageHasABeginning"},
		{"batches wait during a pause", runs, "state != RunWorks && state != RunDeferred", "false", pkg, "TestBatchesThatNoWorkerHas"},
		{"a stopped flow waits for the tick", "internal/breaker/shared.go", "if is.name() == Open {", "if false {", pkg, "TestGoldenEachConditionHasItsLine"},
		{"the oldest message is the latest", counts, "c.Since.IsZero() || sent.Before(c.Since)", "true", pkg, "TestTheOldestMessageCounts"},
		{"old counts ask for attention", pkg + "/attention.go", ` && s.CountsUnknown == ""`, "", pkg, "TestOldCountsAskForNothing"},
		{"SQL is asked while the flow is stopped", runs, "	if flow.Name == breaker.Open {\n", "	if false {\n", pkg, "TestStatus"},
		{"a status waits for SQL as long as others", runs, "context.WithTimeout(ctx, statusWithin)", "context.WithTimeout(ctx, storeTimeout)", pkg, "TestAStatusWaitsShortlyForSQL"},
		{"a silent manager works", runs, "case r.Owner != \"\" && r.Silent > beats:", "case false:", pkg, stays},
		{"a paused run works", runs, "case flow.Name == breaker.Paused:", "case false:", pkg, stays},
		{"an operator's words have no bound", pkg + "/flow.go", "	s.Reason = short(s.Reason)\n", "", pkg, "TestLongWordsAreCutWhereTheyAreShown"},
		{"a shadow's timer stands for the app's", "internal/cosmos/counts.go", "		id += \":shadow\"\n", "", "internal/cosmos", "TestEachTimerHasItsCounts"},
		{"what is scheduled is active", "internal/servicebus/count.go", "m.State == azservicebus.MessageStateActive", "m != nil", "internal/servicebus", "TestQueue"},
		{"the timer counts last", "handlers/recover_retries.go", "			counted := r.SaveCounts(ctx) ", "			var counted error\n			defer func() { counted = r.SaveCounts(ctx) }() ", "handlers", "TestATickTellsTheAuditLogAfterTheRecovery"},
	}
}
