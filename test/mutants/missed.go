package main

// missedTable are mutants of what is told of documents that the change feed did not bring.
func missedTable() []mutant {
	const (
		writer  = "internal/commit"
		missed  = writer + "/missed.go"
		control = "internal/breaker/control.go"
		levels  = "internal/invoice/levels.go"
		first   = "TestWhatTheTimerWritesFirstIsMissed"
		told    = "TestWhatThreeTicksMissIsTold"
		named   = "TestTheDocumentAtWhichTheFeedStopsIsNamed"
	)
	return []mutant{
		{"what was written and not recorded is missed", missed, "case string(Applied), string(Superseded),", "case string(Applied), string(Unchanged), string(Superseded),", writer, first},
		{"a document too deep waits for three ticks", control, "m.Ticks >= missedTicks || m.Code != \"\"", "m.Ticks >= missedTicks", writer, first},
		{"one tick is told", control, "missedTicks = 3", "missedTicks = 1", writer, told},
		{"the message does not end", missed, "(err != nil || t.stopsStill(ctx))", "(err != nil || true)", writer, told},
		{"a failed tick ends the message", missed, "(err != nil || t.stopsStill(ctx))", "t.stopsStill(ctx)", writer, told},
		{"the message ends while the document is too deep", missed, "(err != nil || t.stopsStill(ctx))", "err != nil", writer, named},
		{
			"a quick range hides a slow one", control, "l.Seconds > noted.Seconds || l.At.Sub(noted.At) >= slowestFor", "l.Seconds >= 0",
			"internal/breaker", "TestTheLagOfTheSlowestRangeIsNoted",
		},
		{"a document of 64 levels is not too deep", levels, "const mostLevels = 63\n", "const mostLevels = 64\n", "internal/invoice", "TestADocumentOf64LevelsIsTooDeepForTheFeed"},
		{"brackets in texts count", levels, "			i = textEnd(raw, i) - 1\n", "", "internal/invoice", "TestADocumentOf64LevelsIsTooDeepForTheFeed"},
	}
}
