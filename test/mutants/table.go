package main

// table are the kept mutants. Each is a mistake that a change could make, or a missing rule.
func table() []mutant {
	const (
		writer   = "internal/commit"
		poison   = writer + "/poison.go"
		recovery = writer + "/recover.go"
		schedule = writer + "/schedule.go"
		states   = writer + "/states.go"
	)
	return []mutant{
		// People's work under a rewrite.
		{
			"a reindex writes over what a person repaired by hand", writer + "/select.go",
			"		if s.leavesAlone(d, s.tally) {\n", "		if false {\n", writer, "TestAReindexLeavesAlonePeoplesWork",
		},
		{
			"an edited line commits its document", writer + "/judge.go",
			"v == Edited || v == NotComparable {", "v == NotComparable {", writer, "TestAnEditedLineCommitsNoDocument",
		},
		{
			"the sink is not told of named lines", writer + "/write.go",
			"			if w.mode == Rewrite {\n", "			if false {\n", writer, "TestAReindexLeavesAlonePeoplesWork",
		},
		{
			"a run forgets the lines that its operator named", "internal/run/worker.go",
			"Overwrite: filter.OverwriteEdits, ", "", "internal/run", "TestTheReceiptOfAReindexNamesWhatItLeftAlone",
		},
		// What the host hands over.
		{
			"a caller of an HTTP function says how often it is repeated", "handlers/envelope.go",
			"	if kind == Object { // nothing is read from its Metadata\n", "	if kind == Object {\n		e.retryCount = retryCount(metadata)\n",
			"handlers", "TestNothingIsDecidedFromMetadataInAnHTTPFunction",
		},
		{
			"an unknown path is logged", "handlers/ops.go", "		r.path = rest\n", "		r.path, r.call = rest, rest\n", "handlers", "TestNoKeyReachesALogOrAReply",
		},
		// Who asks, and what they may do.
		{
			"a reader acts", "internal/opsapi/role.go", "	if w.May() || w.Role == r.Role {\n", "	if w.May() || w.Role == Reader {\n", "handlers", "TestAKeyHasARole",
		},
		{
			"a reader sees values", "internal/opsapi/role.go", "				v.Field(i).SetZero()\n", "				hide(v.Field(i))\n", "handlers", "TestAReaderSeesNoValues",
		},
		{
			"the first key of an envelope counts", "handlers/identity.go",
			"	for i := len(r.Identities) - 1; i >= 0; i-- { // the host adds the key's last\n", "	for i := range r.Identities {\n", "handlers", "TestAKeyHasARole",
		},
		{
			"a sign-in counts while the platform's is off", "handlers/ui.go", "	case !a.SignIn:\n", "	case false:\n", "handlers", "TestAPersonHasARole",
		},
		{
			"any provider gives roles", "handlers/identity.go",
			"		if id.AuthenticationType != entraAuthentication || !id.IsAuthenticated {\n", "		if !id.IsAuthenticated {\n", "handlers", "TestAPersonHasARole",
		},
		{
			"another site acts", "handlers/ui.go", `site == "" && origin == "" && r.header("Authorization") != ""`, `site != "x"`, "handlers", "TestAnotherSiteCannotAct",
		},
		{
			"a list is read from its start again", "internal/ops/batches.go", "	p.after = after\n", "	_ = after\n", "internal/ops", "TestBatchesAreListedFailedOnesFirst",
		},
		// Poison pills.
		{
			"evidence after the mark: a failed Keep is passed over", poison,
			"	if err := p.keep(ctx, pill, raw); err != nil {\n", "	if err := p.keep(ctx, pill, raw); err != nil && false {\n",
			writer, "TestWhileBlobStorageIsDownNothingIsMarkedOrCounted",
		},
		{
			"a store of evidence that is down is asked for every document", poison,
			"\t\t\tp.evidenceDown.Store(fault.IsDependency(err))\n", "", writer, "TestWhileBlobStorageIsDownNothingIsMarkedOrCounted",
		},
		{
			"what is kept is not what is patched", poison,
			"\t\tif now.ETag != w.doc.ETag {\n", "\t\tif now.ETag == \"\" {\n", writer, "TestAPoisonPillThatChangesMeanwhileIsLookedAtAgain",
		},
		{
			"a mark's dependency error is the document's", poison,
			"\t\tcase fault.IsDependency(err):\n\t\t\treturn err\n\t\tcase err != nil && fault.KindOf(blameAlone(err))",
			"\t\tcase err != nil && fault.KindOf(blameAlone(err))", writer, "TestADependencyErrorAtTheMarkChangesNothing",
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
			"		folder: EvidenceFolder(cur.Document, s.ReprocessCount),\n", "		folder: EvidenceFolder(cur.Document, 0),\n", writer, "TestReprocessTakesFailedDocumentsOverDirectly",
		},
		{
			"long ids share a folder", poison,
			`+ "~" + d.Version.Key`, "", writer, "TestLongAndStrangeIdsHaveEvidenceOfTheirOwn",
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
			writer, "TestTheRetryScheduleGrowsWhileTheCountStands",
		},
		{
			"the backoff does not grow", schedule, "initialBackoff<<max(n, 0)", "initialBackoff", writer, "TestTheRetryScheduleGrowsWhileTheCountStands",
		},
		{
			"a postponed poison pill is counted", states,
			"	return t.again(t.begin(s), err, withJitter(wait, t.draw()))", "	s.RetryCount--\n	return t.again(t.begin(s), err, withJitter(wait, t.draw()))",
			writer, "TestWhileBlobStorageIsDownNothingIsMarkedOrCounted",
		},
		// The recovery timer.
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
			"end.Add(-stopBefore).Sub(t.now)", "end.Sub(t.now)", writer, "TestTheTimerStartsNothingBeforeItsDeadlineOrBehindTheBreaker",
		},
		{
			"the windows are looked at in another order", writer + "/ports.go",
			"[]Window{PutOff, Orphans, Blamed}", "[]Window{Blamed, PutOff, Orphans}", writer, "TestTheFailuresOfATickAreShared",
		},
		{"one window takes all the failures of a tick", recovery, "mostFailing*w.quarters()/4)", "mostFailing)", writer, "TestTheFailuresOfATickAreShared"},
		{"one window takes all the time of a tick", recovery, "t.now.Add(left*time.Duration(w.quarters())/4)", "t.now.Add(left)", writer, "TestTheTimeOfATickIsShared"},
		{"the timer knows no bound", recovery, "	mostFailing = 460\n", "	mostFailing = 46000\n", writer, "TestTheFailuresOfATickAreShared"},
		{"documents that succeed are bounded", recovery, "[]string{string(invoice.RetryScheduled), string(invoice.Failed), \"left\"}", "[]string{string(invoice.RetryScheduled), string(Applied)}", writer, "TestATickBoundsOnlyWhatFails"},
		{"a window begins at its beginning each time", recovery, "	r.stopped[w] = page\n", "	r.stopped[w] = \"\"\n", writer, "TestTheFailuresOfATickAreShared"},
		{"a window is looked at from its place on only", recovery, "		case wrapped:\n", "		case wrapped || next == \"\":\n", writer, "TestAWindowIsLookedAtRoundToItsBeginning"},
		{
			"a place that is no longer valid stops a window", recovery,
			"fault.KindOf(err) == fault.Document && page != \"\":", "false:", writer, "TestAWindowWhosePlaceIsGoneBeginsAgain",
		},
		{"a window begins again for ever", recovery, "			if page = \"\"; wrapped {\n", "			if page = \"\"; false {\n", writer, "TestAWindowThatRefusesEveryPlaceBeginsAgainOnce"},
		{"a window keeps an invalid place", recovery, "			if page = \"\"; wrapped {\n", "			if wrapped {\n", writer, "TestAWindowWhosePlaceIsGoneBeginsAgain"},
		{"a window that cannot be read ends the tick", recovery, "		if breaker.IsRefusal(err) || ctx.Err() != nil {\n", "		if err != nil {\n", writer, "TestAWindowThatCannotBeReadLosesNothingOfTheOthers"},
		{"one failed page ends a window", recovery, "failed++; failed > 1 ||", "failed++; failed > 0 ||", writer, "TestTheTimerGoesOnAfterOneFailedPageAndStopsAfterTwo"},
		{"postponed documents are not asked for", recovery, "		AppliedBefore: t.r.commit.appliedBefore(ctx),\n", "", writer, "TestAPostponedDocumentIsDueWhenOthersGetThrough"},
		{"the put off are sent together", recovery, "OneByOne: w == PutOff,", "OneByOne: false,", writer, "TestThePutOffWindowIsSentOneByOne"},
		{"a tick begins without a heartbeat", recovery, "	err := r.commit.breaker.Tick(ctx)\n", "	err := r.commit.breaker.Permit(ctx)\n", writer, "TestATickFindsAnOutageByItself"},
		// Lost updates.
		{
			"a 412 counts as done", "internal/commit/patch.go",
			"\tcase fault.Has(err, fault.Changed):\n\t\treturn changed, nil\n",
			"\tcase fault.Has(err, fault.Changed):\n\t\treturn finished, nil\n",
			writer, "TestAfterA412OtherContentIsWrittenInItsTurn",
		},
	}
}
