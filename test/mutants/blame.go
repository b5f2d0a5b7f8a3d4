package main

// blameTable are the mutants of blame and of the search for bad documents.
func blameTable() []mutant {
	const (
		pkg    = "internal/commit"
		blame  = pkg + "/blame.go"
		commit = pkg + "/commit.go"
		states = pkg + "/states.go"
		judge  = pkg + "/judge.go"
		table  = "TestTheTableOfBlame"
		putOff = "TestWhatIsPutOff"
	)
	return []mutant{
		// What an own failure counts.
		{"a failure costs no retry", states, "s.RetryCount = min(s.RetryCount+1, MaxRetries)", "s.RetryCount = min(s.RetryCount, MaxRetries)", pkg, table},
		{"retry_count grows beyond the retries", states, "s.RetryCount = min(s.RetryCount+1, MaxRetries)", "s.RetryCount++", pkg, table},
		{"the fifth failure spends the retries", states, "s.Postponed = s.RetryCount >= MaxRetries", "s.Postponed = s.RetryCount+1 >= MaxRetries", pkg, table},
		{"poison without proof", judge, "known && j.breaker.Proven(ctx, last)", "known && !last.IsZero()", pkg, "TestASchemaThatRefusesEverythingPoisonsNobody"},
		{"without proof a document ends after an hour", blame, "const EndsAlone = 24 * time.Hour", "const EndsAlone = time.Hour", pkg, "TestWhoIsGivenUp/one_bad_alone"},
		{"without proof a build gives up any number", "internal/breaker/proof.go", "maxUnproven = 3", "maxUnproven = 300", "internal/breaker", "TestAFewDocumentsOfABuildMayEndWithoutProof"},
		{"the first failure is the latest", states, "	if first, known := t.firstFailure(s); !known || first.After(t.now()) {", "	{", pkg, "TestTheFirstFailureIsRemembered"},
		{"a success keeps the first failure", states, "s.RetryAfter, s.Postponed, s.FirstFailedAt = 0, false, \"\"", "s.RetryAfter, s.Postponed = 0, false", pkg, "TestTheFirstFailureIsRemembered"},
		{"what is postponed comes while none may be given up", "internal/breaker/proof.go", "last.IsZero() || !b.MayPoison(ctx)", "last.IsZero()", "internal/breaker", "TestWhatIsPostponedComesEarlyWhenItCouldEnd"},
		{"a setting that allows no poison message allows a hundred", "internal/config/config.go", "		return -1\n", "		return 0\n", "internal/config", "TestNoPoisonMessageMayBeAllowed"},
		{"a mark is proof", "internal/commit/request.go", " && !items[0].FailureMark {", " {", pkg, "TestOnlyWrittenContentIsProof"},
		{"a rewrite is proof", "internal/commit/request.go", "\tif r.mode == Write && slices", "\tif slices", pkg, "TestOnlyWrittenContentIsProof"},
		{"what failed before is not told to be failing", "internal/commit/record.go", "isOwn(w.cause) && r.transitions.begin(w.doc.State).RetryCount == 0", "isOwn(w.cause) && r.transitions.begin(w.doc.State).RetryCount > 0", pkg, "TestBadDocumentsStopNoGoodOne"},
		{"what a person reset is not told to be failing", "internal/commit/record.go", "isOwn(w.cause) && r.transitions.begin(w.doc.State).RetryCount == 0", "isOwn(w.cause) && w.doc.State.RetryCount == 0", pkg, "TestResetDocumentsThatFailAgainAreToldOf"},
		// What is put off.
		{"what is put off is counted", states, "	s = t.begin(s)\n	switch {\n", "	s = t.begin(s)\n	s.RetryCount++\n	switch {\n", pkg, putOff},
		{"what is left to others waits two minutes", states, "		return t.schedule(s, err, 0)\n", "		return t.schedule(s, err, aloneBackoff)\n", pkg, putOff},
		{"what is undecided is a try", states, "return t.schedule(s, err, withJitter(aloneBackoff, t.draw()))", "return t.again(s, err, withJitter(aloneBackoff, t.draw()))", pkg, putOff},
		{"failing alone waits no longer each time", states, "Backoff(outages(s), t.draw())", "Backoff(0, t.draw())", pkg, "TestADocumentThatFailsLikeAnOutageAlone"},
		{"failing alone twice is an own failure", blame, "const failsAlone = 3\n", "const failsAlone = 2\n", pkg, "TestADocumentThatFailsLikeAnOutageAlone"},
		{"failing alone is never an own failure", "internal/commit/judge.go", "w.cause = alone(cur.State, res.err)", "w.cause = res.err", pkg, "TestADocumentThatBreaksItsConnectionStandsAlone"},
		// The search.
		{
			"a request that fails like an outage beside a heartbeat is not divided", "internal/commit/write.go",
			"	case fault.IsDependency(err) && !fault.Has(err, fault.OthersAnswered):\n", "	case fault.IsDependency(err):\n",
			pkg, "TestADocumentThatBreaksItsConnectionStandsAlone",
		},
		{"a dead connection is a document's", "internal/commit/request.go", "fault.Has(err, fault.OthersAnswered) && broke == nil &&", "fault.Has(err, fault.OthersAnswered) && broke != nil &&", pkg, "TestARequestWhoseConnectionBrokeIsMadeOnceMore"},
		{"the parts of a request without an answer have half a minute each", "internal/commit/request.go", "\t\t\tr.timeout.Store(int64(partTimeout))\n", "", pkg, "TestThePartsOfARequestThatTimedOutHaveTenSeconds"},
		{"dividing has no end", "internal/commit/write.go", "\t\tif a.w.outOfTime() {\n", "\t\tif false {\n", pkg, "TestDividingEndsAfterTwoMinutes"},
		{"what is undecided is blamed", "internal/commit/write.go", "fault.Wrap(fault.Contention, \"commit: apply\", codeUndecided,", "fault.Wrap(fault.Document, \"commit: apply\", codeUndecided,", pkg, "TestDividingEndsAfterTwoMinutes"},
		{"batches behind one that ran out of time divide as long", commit, "	if b.Purpose == FromFeed && c.hurries() {\n", "	if false {\n", pkg, "TestBatchesBehindOneThatRanOutOfTimeAreInAHurry"},
		{"a run's batches are in a hurry", commit, "	if b.Purpose == FromFeed && c.hurries() {\n", "	if c.hurries() {\n", pkg, "TestBatchesBehindOneThatRanOutOfTimeAreInAHurry"},
		{"where all are bad they are divided all the same", "internal/commit/write.go", "		if a.inRow >= oneByOne {\n", "		if a.inRow < 0 {\n", pkg, "TestWhereAllAreBadTheyAreSentOneByOne"},
		{"what was put off is sent together again", "internal/commit/write.go", "\tif w.oneByOne {\n", "\tif false {\n", pkg, "TestWhatWasPutOffIsSentOneByOne"},
		{"a lost race is tried twice", "internal/commit/request.go", "const contentionTries = 3\n", "const contentionTries = 2\n", pkg, "TestTheTableOfKindsSaysWhatIsDone"},
		{"each part of a request that loses a race is tried three times", "internal/commit/write.go", "a.write(ctx, from, end, 1)", "a.write(ctx, from, end, contentionTries)", pkg, "TestLockedLinesDoNotHoldTheFeed"},
		{
			"a rewrite's lost race is final", "internal/commit/judge.go",
			"	case fault.KindOf(err) == fault.Contention:\n		return false\n", "	case fault.KindOf(err) == fault.Contention:\n		return true\n", pkg, "TestARewriteThatLosesARaceComesAgain",
		},
		{
			"a committed document whose request fails like an outage once has failed", "internal/commit/judge.go",
			"	return j.batch.RetryCount > escapeRetries\n", "	return true\n", pkg, "TestARewriteThatLosesARaceComesAgain",
		},
		{
			"a run does not say how often it offered a batch", "internal/run/worker.go",
			", RetryCount: c.Lease.Epoch - 1,\n", ",\n", "internal/run", "TestADocumentThatAlwaysFailsLikeAnOutageEndsItsRun",
		},
		{
			"a mark that fails like an outage stops the feed", pkg + "/poison.go",
			"\t\tcase fault.Has(err, fault.OthersAnswered) && p.breaker", "\t\tcase err == nil && finalError != \"\" && p.breaker", pkg, "TestAMarkThatFailsLikeAnOutageWaits",
		},
		// The feed.
		{
			"the feed brings retries", "internal/commit/select.go",
			"\tcase eligibility == invoice.Eligible && s.batch.Purpose == FromFeed && d.State.Status == invoice.RetryScheduled:\n", "\tcase false:\n", pkg, "TestRetriesAreTheTimers",
		},
		{"what was never offered is taken", "internal/invoice/eligibility.go", "		return NotOffered\n", "		return Eligible\n", pkg, "TestOnlyOurOwnPendingDocumentsAreTaken"},
		{"postponed documents wait for their time", "internal/commit/select.go", "d.State.Postponed && d.TS < s.appliedBefore", "d.State.Postponed && d.TS < 0", pkg, "TestAPostponedDocumentIsDueWhenOthersGetThrough"},
		{
			"an instance that is cut off holds its documents", "internal/commit/commit.go",
			"cutOff := func() bool { return s.batch.Purpose == FromFeed && ", "cutOff := func() bool { return false && ", pkg, "TestAnInstanceThatIsCutOffLeavesItsDocumentsToTheOthers",
		},
		{
			"an instance that is cut off forgets what it could not record", "internal/commit/commit.go",
			"away != nil && unrecorded == nil", "away != nil", pkg, "TestACutOffInstanceForgetsNobody",
		},
		{
			"documents that changed are given up beside one that cannot be recorded", "internal/commit/commit.go",
			"\t\tworks = again\n", "\t\tif works = again; unrecorded != nil {\n\t\t\treturn undone, false, unrecorded\n\t\t}\n",
			pkg, "TestADocumentIsHealedBesideOneThatCannotBeRecorded",
		},
		{
			"an instance that is cut off writes back what the host reprinted", "internal/commit/refresh.go",
			"f.batch.RetryCount > 0 || d.RewrittenByHost", "f.batch.RetryCount > 0",
			pkg, "TestAnInstanceThatIsCutOffWritesBackNothingThatTheHostReprinted",
		},
		{
			"an instance that is cut off forgets what it must heal", "internal/commit/judge.go",
			"w.heal && fault.IsDependency(w.cause)", "w.heal && fault.Has(w.cause, fault.OthersAnswered)", pkg, "TestAnInstanceThatIsCutOffKeepsWhatItMustHeal",
		},
		{
			"while SQL is unwell documents are told of errors", "internal/commit/write.go",
			"err == nil && works[i].waits() && d.Problem", "works[i].waits() && d.Problem", pkg, "TestWhileSQLIsAwayNobodyIsToldOfErrors",
		},
		{"a batch is left to the timer one offer early", "internal/commit/commit.go", "s.batch.RetryCount > escapeRetries", "s.batch.RetryCount >= escapeRetries", pkg, "TestABatchThatFailsForEverIsLeftToTheTimer"},
		{"a batch that comes again tells how far the feed is behind", "internal/commit/commit.go", " || s.batch.RetryCount > 0 || oldest == 0", " || oldest == 0", pkg, "TestABatchThatIsOfferedAgainTellsNothingOfTheLag"},
	}
}
