package main

// dependenciesTable are mutants of what all instances see: how dependencies answer, skipped documents, mass failures.
func dependenciesTable() []mutant {
	const (
		pkg    = "internal/breaker"
		writer = "internal/commit"
		deps   = pkg + "/dependencies.go"
		tally  = writer + "/tally.go"
		goesOn = "TestOthersDoNotEndAFailureThatGoesOn"
		gone   = "TestAFailureOfAnInstanceThatIsGoneEndsAfterTwoMinutes"
		back   = "TestAFailureThatComesBackStaysForAMinute"
		alone  = "TestWithoutTheControlDocumentAnInstanceShowsWhatItSees"
		none   = "TestWhatIsNoAnswerIsNotNoted"
		names  = "TestSkippedDocumentsAreCountedByName"
		once   = "TestDocumentsOfAnotherEnvironmentAreCountedOnce"
	)
	return []mutant{
		{"the first failure waits for another write", deps, "c.Dependencies[name], worth = next, true", "c.Dependencies[name] = next", pkg, "TestAllInstancesKnowTheFirstFailureBeforeTheBreakerOpens"},
		{"a good answer is written", deps, "b.shared.cached(); !failing &&", "b.shared.reload(ctx); !failing &&", pkg, "TestGoodAnswersCostNoRequest"},
		{"a good answer goes with no write", "internal/breaker/proof.go", "		b.noteAnswers(c, \"\")\n", "", pkg, "TestGoodAnswersCostNoRequest"},
		{"an older good answer replaces a newer one", deps, "			if next.SeenAt.After(noted.SeenAt) {\n", "			if true {\n", pkg, "TestGoodAnswersCostNoRequest"},
		{"clocks of instances are compared", deps, "unchanged := now.Sub(b.shared.notedAt(name))", "unchanged := now.Sub(noted.SeenAt)", pkg, goesOn},
		{"each failure is written", deps, "due = now.Sub(noted.SeenAt) >= seenEvery", "due = true", pkg, goesOn},
		{"a failure that goes on is not written again", deps, "due = now.Sub(noted.SeenAt) >= seenEvery", "due = false", pkg, goesOn},
		{"the failure of an instance that is gone stays", deps, "due = unchanged >= silentAfter", "due = fails && unchanged >= silentAfter", pkg, gone},
		{"nobody takes a failure over", deps, "due = unchanged >= silentAfter", "due = !fails && unchanged >= silentAfter", pkg, "TestAnotherInstanceCarriesOnTheFailure"},
		{"a failure that another carries on begins anew", deps, "		if next.State == noted.State {\n			next.Since = noted.Since\n		}\n", "", pkg, "TestAnotherInstanceCarriesOnTheFailure"},
		{"a failure that comes back ends at once", deps, "				is.keptUntil = now.Add(flapping)\n", "", pkg, back},
		{"the first good answer is the end of a failure", pkg + "/shared.go", "!known && d.State == DependencyOK", "!known && d.State == DependencyFailing", pkg, "TestAFailureSoonAfterTheStartEndsAtOnce"},
		{"a failure that comes back ends with its own dependency only", deps, "		case !fails && mine:\n", "		case !fails && mine && name == latest:\n", pkg, back},
		{"an old failure is written again", deps, "		case name != latest:\n", "		case name != latest && !fails:\n", pkg, "TestAnOldFailureIsNotNotedAgain"},
		{"without the control document the old copy is shown", deps, "known && available && !fresh", "known && !fresh", pkg, alone},
		{"an own failure waits for the control document", deps, "; known && available && !fresh {", "; known && available && (true || !fresh) {", pkg, "TestAnInstancesOwnFreshFailureCountsBesideTheSharedView"},
		{"an own old failure is shown", deps, "now.Sub(is.SeenAt) < silentAfter; known", "now.Sub(is.SeenAt) < 1<<60; known", pkg, "TestAnInstancesOwnFreshFailureCountsBesideTheSharedView"},
		{"a refusal of the breaker is an answer", deps, "IsRefusal(err) || ", "", pkg, none},
		{"a caller's end is an answer", deps, "errors.Is(ctx.Err(), context.Canceled)", "errors.Is(nil, context.Canceled)", pkg, none},
		{"a note has the time of its request", deps, "context.WithTimeout(context.WithoutCancel(ctx), noteTimeout)", "context.WithTimeout(ctx, noteTimeout)", pkg, none},
		{"a new name of skipped documents waits", deps, "		wait = noteEvery\n", "", pkg, names},
		{"each batch of skipped documents is written", deps, "	wait := skippedEvery\n", "	wait := time.Duration(0)\n", pkg, names},
		{"names of skipped documents have no bound", deps, "	return all[:min(len(all), maxNames)]\n", "	return all\n", pkg, names},
		{"skipped documents are never forgotten", deps, "now.Sub(s.LastAt) > skippedExpiry", "false", pkg, names},
		{"a batch that comes again is counted as skipped again", tally, "b.Purpose == FromFeed && b.RetryCount == 0", "b.Purpose == FromFeed", writer, once},
		{"a run counts what it skips", tally, "b.Purpose == FromFeed && b.RetryCount == 0", "b.RetryCount == 0", writer, once},
		{"another environment's patches count as skipped", tally, "if t.firstOffer && d.State.Status == invoice.Pending {", "if t.firstOffer {", writer, once},
		{"a mass failure waits for the next batch", "internal/breaker/proof.go", "	if len(c.MassFailures(now)) > len(was.MassFailures(now)) {\n", "	if false {\n", pkg, "TestAMassFailureIsToldWhenItIsRecognised"},
	}
}
