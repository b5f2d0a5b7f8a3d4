package main

// dependenciesTable are mutants of what all instances see: how dependencies answer, skipped documents, mass failures.
func dependenciesTable() []mutant {
	const (
		pkg     = "internal/breaker"
		writer  = "internal/commit"
		deps    = pkg + "/dependencies.go"
		skipped = pkg + "/skipped.go"
		tally   = writer + "/tally.go"
		status  = pkg + "/status.go"
		goesOn  = "TestAFailureIsBelievedForTwoMinutes"
		other   = "TestAnotherInstanceCarriesOnTheFailure"
		mass    = "TestAMassFailureOfAllInstancesIsSeen"
		none    = "TestWhatIsNoAnswerIsNotNoted"
		names   = "TestSkippedDocumentsAreCountedByName"
		once    = "TestDocumentsOfAnotherEnvironmentAreCountedOnce"
	)
	return []mutant{
		{"the first failure waits for the minute", deps, "	if due {\n", "	if due && false {\n", pkg, "TestAllInstancesKnowTheFirstFailureBeforeTheBreakerOpens"},
		{"a good answer is written", deps, "due := is.State == DependencyFailing &&", "due :=", pkg, "TestGoodAnswersCostNoRequest"},
		{"each failure is written", deps, "		wait = tellEvery\n", "		wait = 0\n", pkg, goesOn},
		{"a failure is believed for ever", deps, " && (d.State != DependencyFailing || now.Sub(d.SeenAt) < silentAfter)", "", pkg, goesOn},
		{"an answer of the future counts", deps, "!d.SeenAt.After(now.Add(mostAhead)) && ", "", pkg, "TestAnAnswerInTheFutureIsNotThere"},
		{"a good answer hides a failure", deps, " || (d.State == DependencyOK && other.State == DependencyFailing) {", " || d.State == DependencyFailing {", pkg, goesOn},
		{"a failure that another carries on begins anew", deps, "		d.Since = other.Since\n", "", pkg, other},
		{"a dependency that flaps costs a write each time", deps, "wait := Dependency{State: DependencyOK, Since: now, SeenAt: now}, noteEvery", "wait := Dependency{State: DependencyOK, Since: now, SeenAt: now}, 0*noteEvery", pkg, other},
		{"a status that was not written is lost", status, "Committed: b.committed,", "Committed: b.committed - 1,", pkg, "TestTheCountsOfCommittedDocumentsAddUp"},
		{"the statuses of long ago count", status, "b.o.Now().Add(-statusKept)", "time.Time{}", pkg, "TestTheCountsOfCommittedDocumentsAddUp"},
		{"the failures of others are no mass failure", status, "m.Failing = addFailing(m.Failing, f, now)", "m.Failing = addFailing(nil, f, now)", pkg, mass},
		{"a mass failure is not told", status, "massFailureSize = 20", "massFailureSize = 2000", pkg, mass},
		{"a mass failure is never forgotten", status, "f.Documents < massFailureSize || now.Sub(f.LastAt) > failingExpiry", "f.Documents < massFailureSize", pkg, mass},
		{"few failures in many hours are a mass failure", status, " || f.Documents < massFailureSize && now.Sub(f.Since) > failingExpiry", "", pkg, "TestFewFailuresAnHourAreNoMassFailure"},
		{"a refusal of the breaker is an answer", deps, "IsRefusal(err) || ", "", pkg, none},
		{"a caller's end is an answer", deps, "errors.Is(ctx.Err(), context.Canceled)", "errors.Is(nil, context.Canceled)", pkg, none},
		{"a status has the time of its request", status, "withTimeout(context.WithoutCancel(ctx), tellTimeout", "withTimeout(ctx, tellTimeout", pkg, none},
		{"a new name of skipped documents waits", skipped, "		wait = noteEvery\n", "", pkg, names},
		{"each batch of skipped documents is written", skipped, "	wait := skippedEvery\n", "	wait := time.Duration(0)\n", pkg, names},
		{"names of skipped documents have no bound", skipped, "	return all[:min(len(all), maxNames)]\n", "	return all\n", pkg, names},
		{"skipped documents are never forgotten", skipped, "now.Sub(s.LastAt) > skippedExpiry", "false", pkg, names},
		{"a batch that comes again is counted as skipped again", tally, "b.Purpose == FromFeed && b.RetryCount == 0", "b.Purpose == FromFeed", writer, once},
		{"a run counts what it skips", tally, "b.Purpose == FromFeed && b.RetryCount == 0", "b.RetryCount == 0", writer, once},
		{"another environment's patches count as skipped", tally, "if t.firstOffer && d.State.Status == invoice.Pending {", "if t.firstOffer {", writer, once},
		{"a mass failure waits for the minute", status, "	if f.Documents == massFailureSize {\n		b.tell(ctx)\n", "	if f.Documents == massFailureSize {\n", pkg, mass},
	}
}
