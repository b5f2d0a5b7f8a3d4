package main

// table are the kept mutants. Each stands for a mistake that somebody could make, or for a rule that could be left out.
func table() []mutant {
	const (
		writer   = "internal/writer"
		poison   = writer + "/poison.go"
		recovery = writer + "/recover.go"
		schedule = writer + "/schedule.go"
		settle   = writer + "/settle.go"
		states   = writer + "/states.go"
	)
	return []mutant{
		// Poison pills.
		{
			"evidence after the mark: a failed Keep is passed over", poison,
			"	if err := p.keep(ctx, pill, raw); err != nil {\n", "	if err := p.keep(ctx, pill, raw); err != nil && false {\n",
			writer, "TestWhileBlobStorageIsDownNothingIsMarkedOrCounted",
		},
		{
			"a store of evidence that is down is asked for every document", poison,
			"			p.evidenceDown = fault.IsDependency(err)\n", "", writer, "TestWhileBlobStorageIsDownNothingIsMarkedOrCounted",
		},
		{
			"what is kept is not what is patched", poison,
			"	if now.ETag != cur.ETag {\n", "	if now.ETag == \"\" {\n", writer, "TestAPoisonPillThatChangesMeanwhileIsLookedAtAgain",
		},
		{
			"a mark's dependency error is the document's", poison,
			"		case fault.IsDependency(err):\n			return true, err\n		case err != nil && fault.KindOf(blameAlone(err))",
			"		case err != nil && fault.KindOf(blameAlone(err))", writer, "TestADependencyErrorAtTheMarkChangesNothing",
		},
		{
			"a mark that finds the content is a poison pill all the same", poison,
			"out.Verdict == Unchanged || out.Verdict == Superseded", "out.Verdict == Superseded", writer, "TestAMarkWhoseLinesHoldTheContentOrNewerIsNoPoisonPill",
		},
		{
			"a mark that finds something newer is a poison pill all the same", poison,
			"out.Verdict == Unchanged || out.Verdict == Superseded", "out.Verdict == Unchanged", writer, "TestAMarkWhoseLinesHoldTheContentOrNewerIsNoPoisonPill",
		},
		{
			"missing lines of a mark go unsaid", poison,
			"len(missing) > 0", "len(missing) > 99", writer, "TestAMissingLineDropsOutOfTheMarkAlone",
		},
		{
			"the second poisoning overwrites the first one's folder", poison,
			"		folder: EvidenceFolder(cur, s.ReprocessCount),\n", "		folder: EvidenceFolder(cur, 0),\n", writer, "TestReprocessTakesFailedDocumentsOverDirectly",
		},
		{
			"long ids share a folder", poison,
			`+ "~" + d.Version.Key`, "", writer, "TestLongAndStrangeIdsHaveEvidenceOfTheirOwn",
		},
		{
			"nobody asks whether others were written", poison,
			"	case !p.c.gate.contrast(ctx, since):\n", "	case !p.c.gate.contrast(ctx, since) && false:\n", writer, "TestTheRetryScheduleGrowsAndTheBudgetEnds",
		},
		{
			"unreadable by a new build is blamed at once", poison,
			"p.c.gate.appliedHere(p.c.o.Now().Add(-readsOthers))", "true", writer, "TestAnUnreadableDocumentIsNotBlamedBeforeOthersAreWritten",
		},
		{
			"unreadable waits an hour for no reason", poison,
			"p.c.gate.appliedHere(p.c.o.Now().Add(-readsOthers))", "false", writer, "TestAnUnreadableDocumentFailsAtOnceWhereTheSameBuildReadsOthers",
		},
		// States and schedule.
		{
			"a failed document that is asked for again keeps its budget", states,
			"|| (s.Status == invoice.Failed && t.reprocess)", "", writer, "TestReprocessTakesFailedDocumentsOverDirectly",
		},
		{
			"six retries", schedule, "	MaxRetries = 5\n", "	MaxRetries = 6\n", writer, "TestSeedExample4PoisonPill",
		},
		{
			"jitter may be early", schedule,
			"	return d + time.Duration(float64(d)*jitterShare*draw)\n", "	return d - time.Duration(float64(d)*jitterShare*draw)\n",
			writer, "TestTheRetryScheduleGrowsAndTheBudgetEnds",
		},
		{
			"the backoff does not grow", schedule, "initialBackoff<<max(n, 0)", "initialBackoff", writer, "TestTheRetryScheduleGrowsAndTheBudgetEnds",
		},
		{
			"a postponed poison pill is counted", states,
			"	return t.again(t.begin(s), err, withJitter(wait, t.draw()))\n", "	s.RetryCount++\n	return t.again(t.begin(s), err, withJitter(wait, t.draw()))\n",
			writer, "TestWhileBlobStorageIsDownNothingIsMarkedOrCounted",
		},
		// The recovery timer.
		{
			"retries are taken before they are due", recovery,
			"		if w.RetryAfter > now.Unix() {\n			return false\n		}\n", "", writer, "TestTheTimerTakesWhatIsDueAndWhatWasLeftBehind",
		},
		{
			"the feed's documents are taken from it", recovery,
			"		if w.TS >= orphanBefore {\n			return false\n		}\n", "", writer, "TestTheTimerTakesWhatIsDueAndWhatWasLeftBehind",
		},
		{
			"the feed's lag is not looked at", recovery,
			"now.Sub(feed.At) < lagIsOld", "false", writer, "TestAnOrphanIsOlderThanTwiceWhatTheFeedHasYetToBring",
		},
		{
			"an old note of the lag is believed for ever", recovery,
			"now.Sub(feed.At) < lagIsOld", "true", writer, "TestAnOrphanIsOlderThanTwiceWhatTheFeedHasYetToBring",
		},
		{
			"the timer works up to its deadline", recovery,
			"deadline.Sub(r.commit.o.Now()) < stopBefore", "deadline.Sub(r.commit.o.Now()) < 0", writer, "TestTheTimerStartsNothingBeforeItsDeadlineOrBehindTheGate",
		},
		{
			"the timer knows no bound", recovery,
			"	return all[:min(len(all), r.PerTick)], nil\n", "	return all, nil\n", writer, "TestTheTimerIsBoundedAndTakesTheOldestFirst",
		},
		// Patience.
		{
			"nobody waits for a probe that is nearly due", writer + "/gatekeeper.go",
			"rest > patience || g.o.Wait", "rest > 0 || g.o.Wait", writer, "TestAProbeThatIsNearlyDueIsWaitedFor",
		},
		{
			"a batch that waited for an outage is cut smaller", writer + "/commit.go",
			"		return int(since / hostPause)\n", "		return p.batch.RetryCount\n", writer, "TestABatchThatWaitedForAnOutageIsNotCutSmaller",
		},
		// Lost updates.
		{
			"a 412 counts as done", settle,
			"	case fault.Has(err, fault.Changed):\n		return false, nil\n	case fault.Has(err, fault.Gone) && !res.failed():",
			"	case fault.Has(err, fault.Changed):\n		return true, nil\n	case fault.Has(err, fault.Gone) && !res.failed():",
			writer, "TestRandomRacesEndWithEveryDocumentCountedAndTrue",
		},
	}
}
