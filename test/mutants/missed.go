package main

// missedTable are mutants of what is told of documents that the change feed did not bring.
func missedTable() []mutant {
	const (
		writer  = "internal/commit"
		missed  = writer + "/missed.go"
		control = "internal/breaker/control.go"
		levels  = "internal/invoice/levels.go"
		excuses = "TestWhatTheFeedMissedAndWhatItHasAnExcuseFor"
		told    = "TestWhatTheFeedMissedIsToldUntilATickFindsNothing"
		named   = "TestTheDocumentAtWhichTheFeedStopsIsNamed"
	)
	return []mutant{
		{"a young process says that the feed missed what was there before", missed, "m := missing{since: wellSince,", "m := missing{since: now.Add(-24 * time.Hour),", writer, excuses},
		{"a failed tick is no excuse", missed, "r.well.last = r.commit.o.Now(); err != nil {", "r.well.last = r.commit.o.Now(); false && err != nil {", writer, excuses},
		{"a pause of the ticks is no excuse", missed, "now.Sub(r.well.last) > invoice.OrphanAge", "r.well.first.IsZero()", writer, excuses},
		{"a stop of the flow is no excuse", missed, "[]time.Time{closed, view", "[]time.Time{closed.Add(-24 * time.Hour), view", writer, excuses},
		{"a range that is behind is no excuse", control, "if lag.isBehind() && lag.At.After(behindAt) {", "if lag.isBehind() && lag.At.After(behindAt) && false {", writer, excuses},
		{
			"a slow range among quick ones is not noted", "internal/breaker/proof.go",
			"(lag.isBehind() && lag.At.Sub(c.Feed.BehindAt) >= behindEvery)", "(lag.isBehind() && false)", writer, excuses,
		},
		{"what was written and not recorded is missed", missed, "case string(Applied), string(Superseded),", "case string(Applied), string(Unchanged), string(Superseded),", writer, excuses},
		{"a document too deep has an excuse", missed, "if !deep && (m.never", "if (m.never", writer, excuses},
		{"the message does not end", missed, "if cleared && t.stoppedAt(ctx) == \"\" {", "if cleared && false {", writer, told},
		{"the message ends while documents wait with an excuse", missed, "t.found.Found[Orphans] == 0 &&", "t.found.Found[Orphans] >= 0 &&", writer, told},
		{"the message ends while the document is too deep", missed, "cleared && t.stoppedAt(ctx) == \"\"", "cleared", writer, named},
		{"a document of 64 levels is not too deep", levels, "const mostLevels = 63\n", "const mostLevels = 64\n", "internal/invoice", "TestADocumentOf64LevelsIsTooDeepForTheFeed"},
		{"brackets in texts count", levels, "			i = textEnd(raw, i) - 1\n", "", "internal/invoice", "TestADocumentOf64LevelsIsTooDeepForTheFeed"},
	}
}
