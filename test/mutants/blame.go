package main

// blameTable are the mutants of blame and of the search for bad documents.
func blameTable() []mutant {
	const (
		pkg    = "internal/commit"
		apply  = pkg + "/apply.go"
		blame  = pkg + "/blame.go"
		chunk  = pkg + "/chunk.go"
		commit = pkg + "/commit.go"
		settle = pkg + "/settle.go"
		states = pkg + "/states.go"
		table  = "TestTheTableOfBlame"
		putOff = "TestWhatIsPutOff"
	)
	return []mutant{
		// What an own failure counts.
		{"a failure counts although nobody got through after the one before", states, "	case first || proven:\n", "	case first || proven || s.RetryCount > 0:\n", pkg, table},
		{"a failure that is taken back begins the schedule anew", states, "Backoff(ownFailures(s), t.draw())", "Backoff(0, t.draw())", pkg, table},
		{"a failure that is taken back waits for its time", states, "		s.Postponed = true\n", "", pkg, table},
		{"the sixth failure is not postponed", states, "s.Postponed = s.RetryCount >= maxFailures", "s.Postponed = s.RetryCount > maxFailures", pkg, table},
		{"poison without proof", states, "	if !isOwn(err) || !proven {\n", "	if !isOwn(err) {\n", pkg, table},
		{"proof is asked for again when a failure is recorded", settle, "p.next(d, cur, res, proven)", "p.next(d, cur, res, isOwn(res.err) && p.proven(ctx, cur))", pkg, "TestProofIsAskedForOnce"},
		{"five failures are poison", blame, "const maxFailures = MaxRetries + 1\n", "const maxFailures = MaxRetries\n", pkg, "TestSeedExample4PoisonPill"},
		{"a setting that allows no poison message allows a hundred", "internal/config/config.go", "		return -1\n", "		return 0\n", "internal/config", "TestTheControlContainerHasADefault"},
		{"an unreadable document is tried three times", blame, "const unreadableFailures = 1\n", "const unreadableFailures = 2\n", pkg, "TestAnUnreadableDocumentFailsAtItsSecondTry"},
		{
			"what was put off moves the time of the last failure", blame,
			"	if ownKind(s.LastErrorKind) {\n", "	if s.LastErrorKind != \"\" {\n", pkg, "TestTheTimeOfTheLastOwnFailure",
		},
		{"a mark is proof", apply, " && !items[0].FailureMark {", " {", pkg, "TestOnlyWrittenContentIsProof"},
		{"a rewrite is proof", apply, "	if p.mode == Write && slices", "	if slices", pkg, "TestOnlyWrittenContentIsProof"},
		{"what failed before is not told to be failing", settle, "isOwn(res.err) && p.t.begin(cur.State).RetryCount == 0", "isOwn(res.err) && p.t.begin(cur.State).RetryCount > 0", pkg, "TestBadDocumentsStopNoGoodOne"},
		{"what a person reset is not told to be failing", settle, "isOwn(res.err) && p.t.begin(cur.State).RetryCount == 0", "isOwn(res.err) && cur.State.RetryCount == 0", pkg, "TestResetDocumentsThatFailAgainAreToldOf"},
		// What is put off.
		{"what is put off stays postponed", states, "	s.Postponed = false\n	switch {\n", "	switch {\n", pkg, putOff},
		{"what is put off is counted", states, "	s.Postponed = false\n	switch {\n", "	s.Postponed = false\n	s.RetryCount++\n	switch {\n", pkg, putOff},
		{"what is left to others waits two minutes", states, "		return t.schedule(s, err, 0)\n", "		return t.schedule(s, err, aloneBackoff)\n", pkg, putOff},
		{"what is undecided is a try", states, "return t.schedule(s, err, withJitter(aloneBackoff, t.draw()))", "return t.again(s, err, withJitter(aloneBackoff, t.draw()))", pkg, putOff},
		{"failing alone waits no longer each time", states, "Backoff(outages(s), t.draw())", "Backoff(0, t.draw())", pkg, "TestADocumentThatFailsLikeAnOutageAlone"},
		{"failing alone twice is an own failure", blame, "const failsAlone = 3\n", "const failsAlone = 2\n", pkg, "TestADocumentThatFailsLikeAnOutageAlone"},
		{"failing alone is never an own failure", settle, "		res.err = alone(cur.State, res.err)\n", "", pkg, "TestADocumentThatBreaksItsConnectionStandsAlone"},
		// The search.
		{
			"a request that fails like an outage beside a heartbeat is not divided", apply,
			"	case fault.IsDependency(err) && !fault.Has(err, fault.OthersAnswered):\n", "	case fault.IsDependency(err):\n",
			pkg, "TestADocumentThatBreaksItsConnectionStandsAlone",
		},
		{"a dead connection is a document's", apply, "fault.Has(err, fault.OthersAnswered) && broke == nil &&", "fault.Has(err, fault.OthersAnswered) && broke != nil &&", pkg, "TestARequestWhoseConnectionBrokeIsMadeOnceMore"},
		{"the parts of a request without an answer have half a minute each", apply, "			p.partTimeout.Store(int64(partTimeout))\n", "", pkg, "TestThePartsOfARequestThatTimedOutHaveTenSeconds"},
		{"dividing has no end", apply, "		if a.p.outOfTime() {\n", "		if false {\n", pkg, "TestDividingEndsAfterTwoMinutes"},
		{"what is undecided is blamed", apply, "fault.Wrap(fault.Contention, \"commit: apply\", codeUndecided,", "fault.Wrap(fault.Document, \"commit: apply\", codeUndecided,", pkg, "TestDividingEndsAfterTwoMinutes"},
		{"batches behind one that ran out of time divide as long", commit, "	if b.Purpose == FromFeed && c.hurries() {\n", "	if false {\n", pkg, "TestBatchesBehindOneThatRanOutOfTimeAreInAHurry"},
		{"a run's batches are in a hurry", commit, "	if b.Purpose == FromFeed && c.hurries() {\n", "	if c.hurries() {\n", pkg, "TestBatchesBehindOneThatRanOutOfTimeAreInAHurry"},
		{"where all are bad they are divided all the same", apply, "		if a.inRow >= oneByOne {\n", "		if a.inRow < 0 {\n", pkg, "TestWhereAllAreBadTheyAreSentOneByOne"},
		{"what was put off is sent together again", apply, "	if p.batch.OneByOne {\n", "	if false {\n", pkg, "TestWhatWasPutOffIsSentOneByOne"},
		{"a lost race is tried twice", apply, "const contentionTries = 3\n", "const contentionTries = 2\n", pkg, "TestTheTableOfKindsSaysWhatIsDone"},
		{"each part of a request that loses a race is tried three times", apply, "a.write(ctx, from, end, 1)", "a.write(ctx, from, end, contentionTries)", pkg, "TestLockedLinesDoNotHoldTheFeed"},
		{
			"a rewrite's lost race is final", settle,
			"	case fault.KindOf(res.err) == fault.Contention: //", "	case res.err == nil: //", pkg, "TestARewriteThatLosesARaceComesAgain",
		},
		{
			"a mark that fails like an outage stops the feed", pkg + "/poison.go",
			"		case fault.Has(err, fault.OthersAnswered):\n", "		case err == nil && finalError != \"\":\n", pkg, "TestAMarkThatFailsLikeAnOutageWaits",
		},
		// The feed.
		{
			"the feed brings retries", commit,
			"	case eligibility == invoice.Eligible && p.batch.Purpose == FromFeed && d.State.Status == invoice.RetryScheduled:\n", "	case false:\n", pkg, "TestRetriesAreTheTimers",
		},
		{"what was never offered is taken", "internal/invoice/eligibility.go", "		return NotOffered\n", "		return Eligible\n", pkg, "TestOnlyOurOwnPendingDocumentsAreTaken"},
		{"postponed documents wait for their time", commit, "d.State.Postponed && d.TS <= p.dueBefore", "d.State.Postponed && d.TS <= 0", pkg, "TestAPostponedDocumentIsDueWhenOthersGetThrough"},
		{
			"an instance that is cut off holds its documents", commit,
			"	if cutOff {\n", "	if false {\n", pkg, "TestAnInstanceThatIsCutOffLeavesItsDocumentsToTheOthers",
		},
		{
			"an instance that is cut off forgets what it could not record", chunk,
			"recordErr := p.recordAll(ctx, known); recordErr != nil {", "recordErr := p.recordAll(ctx, known); recordErr != nil && err == nil {", pkg, "TestACutOffInstanceForgetsNobody",
		},
		{
			"an instance that is cut off writes back what the host reprinted", chunk,
			"	docs, err := p.freshen(ctx, docs, p.doubtful)\n", "	err := error(nil)\n", pkg, "TestAnInstanceThatIsCutOffWritesBackNothingThatTheHostReprinted",
		},
		{
			"an instance that is cut off forgets what it must heal", settle,
			"healing && fault.IsDependency(res.err)", "healing && fault.Has(res.err, fault.OthersAnswered)", pkg, "TestAnInstanceThatIsCutOffKeepsWhatItMustHeal",
		},
		{
			"while SQL is unwell documents are told of errors", chunk,
			"		case err == nil:\n			known", "		case true:\n			known", pkg, "TestWhileSQLIsAwayNobodyIsToldOfErrors",
		},
		{"a batch is left to the timer one offer early", commit, "p.batch.RetryCount > escapeRetries", "p.batch.RetryCount >= escapeRetries", pkg, "TestABatchThatFailsForEverIsLeftToTheTimer"},
		{"a batch that comes again tells how far the feed is behind", commit, " || p.batch.RetryCount > 0 || p.oldest == 0", " || p.oldest == 0", pkg, "TestABatchThatIsOfferedAgainTellsNothingOfTheLag"},
	}
}
