package main

import "strings"

// breakerTable are the mutants of the breaker: its states, what counts as a failure, which instance may probe, what all instances share.
func breakerTable() []mutant {
	const (
		pkg     = "internal/breaker"
		writer  = "internal/commit"
		state   = pkg + "/state.go"
		breaker = pkg + "/breaker.go"
		beat    = pkg + "/heartbeat.go"
		proof   = pkg + "/proof.go"
		control = pkg + "/control.go"
		shared  = pkg + "/shared.go"
		outage  = "TestAnOutageOpensProbesAndRampsUp"
		alone   = "TestOneDocumentIsNoOutageAndManyAre"
		again   = "	state := b.state(ctx) // the request before this one may have opened it\n"
		waited  = "		case <-ctx.Done():\n			return fault.Wrap(fault.Infrastructure, op, \"cancelled\", \"stopped while another request was under way\", ctx.Err())\n		}\n	}\n" + again
	)
	return []mutant{
		// The states.
		{"four failures open the breaker", state, "	failuresToOpen = 5\n", "	failuresToOpen = 4\n", writer, "TestSeedExample3CircuitBreakerOpens"},
		{
			"one hiccup that hits many requests opens the breaker", breaker,
			" && now.Sub(b.failingSince) >= minFailingSpan", "", pkg, "TestFiveFailuresThatSpanFifteenSecondsOpenIt",
		},
		{
			"a claimed probe keeps nobody away", state,
			"			s = s.until(now.Add(probeEvery + in.jitter))\n", "", pkg, outage,
		},
		{"a claim does not expire", state, "s = s.until(now.Add(probeEvery + in.jitter))", "s = s.until(now.Add(1 << 50))", pkg, "TestTheFirstRequestForDocumentsIsClaimed"},
		{"an instance whose probe failed is the first to probe again", state, "		at = at.Add(failedProbeWait)\n", "", pkg, outage},
		{
			"a failure on the ramp is passed over", state,
			"s.Name == Paused || (s.Name == Open && !in.probe)", "s.Name == Paused || s.Name == HalfOpen || (s.Name == Open && !in.probe)", pkg, outage,
		},
		{"an outage begins anew with each failed probe", state, "	if s.name() == Closed {\n		s.Since = now\n", "	if s.name() != \"\" {\n		s.Since = now\n", pkg, outage},
		{"the ramp has one step", state, "	limit := s.Limit * 5\n", "	limit := s.Limit * 500\n", pkg, outage},
		{
			"the wait after throttling does not double", state,
			"2*time.Duration(was.WaitSeconds)*time.Second", "time.Duration(was.WaitSeconds)*time.Second", pkg, "TestThrottlingDoublesAndThenGoesOneAtATime",
		},
		{"the wait after throttling has no bound", state, "min(maxThrottleWait, 2*time", "min(1<<60, 2*time", pkg, "TestThrottlingDoublesAndThenGoesOneAtATime"},
		{
			"a Retry-After is not looked at", state,
			"		if in.retryAfter > 0 {\n", "		if in.retryAfter < 0 {\n", pkg, "TestThrottlingDoublesAndThenGoesOneAtATime",
		},
		{
			"requests are smaller after throttling", state,
			"		if s.Kind == fault.Throttled {\n			return FullLimit\n", "		if s.Kind == \"\" {\n			return FullLimit\n",
			pkg, "TestThrottlingDoublesAndThenGoesOneAtATime",
		},
		{"after throttling nobody remembers it", state, "		c.SerialUntil = now.Add(serialPeriod)\n", "", pkg, "TestThrottlingDoublesAndThenGoesOneAtATime"},
		{"requests go side by side after throttling", breaker, "	if b.o.Now().Before(b.state(ctx).SerialUntil) {\n", "	if false {\n", pkg, "TestAfterThrottlingAnInstanceMakesOneRequestAtATime"},
		{
			"a request that waited for its turn does not look again", breaker,
			"	if b.o.Now().Before(b.state(ctx).SerialUntil) {\n		select {\n		case b.serial <- struct{}{}:\n			defer func() { <-b.serial }()\n" + waited,
			"	state := b.state(ctx)\n	if b.o.Now().Before(state.SerialUntil) {\n		select {\n		case b.serial <- struct{}{}:\n			defer func() { <-b.serial }()\n" + strings.Replace(waited, again, "", 1),
			pkg, "TestARequestThatWaitedForItsTurnLooksAgain",
		},
		{"a full database is asked every minute", state, "now.Add(quotaWait)", "now.Add(probeEvery)", pkg, "TestAFullDatabaseIsAskedEveryFiveMinutes"},
		{"a half-open breaker that no document needs stays so", state, ">= idlePeriod:", ">= 100*idlePeriod:", pkg, "TestTwoHeartbeatsCloseWhatNoDocumentNeeds"},
		{"one heartbeat closes the breaker", state, ">= idlePeriod:", ">= 0:", pkg, "TestTwoHeartbeatsCloseWhatNoDocumentNeeds"},
		{
			"a heartbeat that began before it opened closes the breaker", state,
			"	case s.Name == Open && in.probe:\n", "	case s.Name == Open:\n", pkg, "TestTwoHeartbeatsCloseWhatNoDocumentNeeds",
		},
		{"an outage ends a pause", state, "s.Name == Paused || (s.Name == Open && !in.probe)", "s.Name == Open && !in.probe", pkg, "TestOnlyAnOperatorEndsAPause"},
		{"a probe is a transition for the audit log", control, "(to == HalfOpen || ", "(", pkg, "TestEveryChangeThatPeopleCountIsKeptForTheAuditLog"},
		// What counts, and for whom.
		{"a document's own failure is no success", breaker, "	case !fault.IsDependency(err):\n		b.recordSuccess(ctx)\n", "	case err == nil:\n		b.recordSuccess(ctx)\n", pkg, "TestARefusalAndALostRaceSayThatTheDatabaseWorks"},
		{"an answer ends no row of failures", breaker, "	b.failures, b.ofDocuments = 0, false\n	was := b.cutOff\n", "	was := b.cutOff\n", pkg, "TestARefusalAndALostRaceSayThatTheDatabaseWorks"},
		{"a committed heartbeat tells no document from an outage", breaker, "	case b.heartbeatSince(ctx, begin) == nil:\n", "	case begin.IsZero():\n", pkg, alone},
		{"every failure alone counts", breaker, "	case times == 1 && others:\n", "	case times > 0:\n", pkg, alone},
		{"the same two documents count again and again", breaker, "	case times == 1 && others:\n", "	case others:\n", pkg, "TestTwoDocumentsAreNoOutageHoweverOften"},
		{"a committed heartbeat ends a row of documents that fail alone", beat, "		if !b.ofDocuments {\n", "		if true {\n", pkg, alone},
		{"what is applied ends no row of documents that fail alone", proof, "	b.appliedAt = begin\n	clear(b.loneFailures)\n", "	b.appliedAt = begin\n", pkg, "TestADocumentOpensAHalfOpenBreakerAgainAtMostThreeTimes"},
		{
			"a document opens a half-open breaker for ever", breaker,
			"	case half && others && times <= maxReopens:\n", "	case half && others:\n", pkg, "TestADocumentOpensAHalfOpenBreakerAgainAtMostThreeTimes",
		},
		{"a document that fails alone leaves a half-open breaker idle", breaker, "			c.Breaker.ChangedAt = now\n", "", pkg, "TestAHeartbeatAloneClosesNothingWhileDocumentsFail"},
		{"failures of hours are a row", breaker, "	if now.Sub(b.lastFailure) > streakGap {\n", "	if false {\n", pkg, "TestFailuresHoursApartAreNoRow"},
		{"a heartbeat that is locked out is no outage", beat, "	if err != nil && !fault.IsDependency(err) {\n", "	if false {\n", pkg, "TestAHeartbeatThatIsLockedOutIsAnOutage"},
		{
			"a tick makes one heartbeat", beat,
			"		return b.confirm(ctx, err)\n", "		b.recordFailure(ctx, err, false)\n", pkg, "TestATickFindsAnOutageWithoutTraffic",
		},
		{
			"an instance that alone cannot reach SQL stops the others", breaker,
			"c.lastReachedByOthers(b.o.Instance).After(since) {", "c.lastReachedByOthers(b.o.Instance).After(since) && since.IsZero() {", pkg, "TestAnInstanceThatIsCutOffStopsNobody",
		},
		{
			"an instance that once saw others write is cut off for ever", breaker,
			"c.lastReachedByOthers(b.o.Instance).After(since) {", "!c.lastReachedByOthers(b.o.Instance).IsZero() || since.IsZero() {", pkg, "TestAnInstanceThatIsCutOffStopsNobody",
		},
		{
			"the first request for documents is nobody's", breaker,
			"	case state.Name == HalfOpen && state.Limit == 1 && !b.claim(ctx, state):\n", "	case state.Name == \"\" && !b.claim(ctx, state):\n",
			pkg, "TestTheFirstRequestForDocumentsIsClaimed",
		},
		{"requests are made beside an open breaker", breaker, "	case state.Stopped(), n > state.MaxDocuments():\n", "	case n > state.MaxDocuments():\n", pkg, "TestFiveFailuresThatSpanFifteenSecondsOpenIt"},
		{"a request may be larger than the ramp allows", breaker, "	case state.Stopped(), n > state.MaxDocuments():\n", "	case state.Stopped():\n", pkg, "TestTheFirstRequestForDocumentsIsClaimed"},
		{"a cancelled call counts", breaker, "	case ctx.Err() != nil && fault.KindOf(err) == fault.Infrastructure:\n", "	case false:\n", pkg, "TestACallersEndIsNobodysFailure"},
		{"a request has no bound", breaker, "		timeout = requestTimeout\n", "		timeout = 10 * requestTimeout\n", writer, "TestThePartsOfARequestWithoutAnAnswerHaveTenSeconds"},
		// What all instances share.
		{"another build's success is proof", proof, "last := c.AppliedBy(b.o.Build);", "last := c.LastApplied();", pkg, "TestProofIsPerBuild"},
		{"proof needs no minute", proof, "!last.Before(failedAt.Add(provenAfter))", "!last.Before(failedAt)", pkg, "TestWithoutTheControlDocumentNothingIsProvenAndTheBreakerWorks"},
		{"an own copy is proof", proof, "	if !available {\n", "	if !available && c.Applied == nil {\n", pkg, "TestWithoutTheControlDocumentNothingIsProvenAndTheBreakerWorks"},
		{"the app makes as many poison messages as there are", proof, "taken = poison.Count < b.o.MaxPoisonPerHour &&", "taken = poison.Count >= 0 &&", pkg, "TestTheHoursPoisonMessagesAreTheWholeApps"},
		{"nobody asks how many poison messages were made", proof, "b.o.Now()) < b.o.MaxPoisonPerHour\n", "b.o.Now()) < 1<<30\n", pkg, "TestTheHoursPoisonMessagesAreTheWholeApps"},
		{"a later hour begins the count anew", control, "c.Poison.Hour.After(hour.Add(time.Hour))", "c.Poison.Hour.After(hour)", pkg, "TestTheHoursLimitHoldsAroundAFullHour"},
		{"a write in the future is believed", control, "	for i, a := range c.Applied {\n		if later(a.At) {", "	for i, a := range c.Applied {\n		if false && later(a.At) {", pkg, "TestAWriteInTheFutureProvesNothing"},
		{"an hour's poison messages count for ever", control, "c.Poison.Hour.Before(hour) || ", "c.Poison.Hour.IsZero() || ", writer, "TestNoMorePoisonPillsAnHourThanMayBe"},
		{"a poison message is counted at each try of its mark", proof, "	if counted {\n", "	if counted && hour.IsZero() {\n", writer, "TestAPoisonPillIsCountedOnceHoweverOftenItsMarkIsTried"},
		{"instances look at what they share once a minute", shared, "controlAge = 5 * time.Second", "controlAge = time.Minute", pkg, "TestEveryInstanceKnowsWithinFiveSeconds"},
		{
			"an instance that cannot write goes by what it reads", shared,
			"	if err == nil && mute {", "	if err == nil && mute && s.store == nil {", pkg, "TestAnInstanceThatCannotWriteTheControlDocumentGoesByItsOwnCopy",
		},
		{
			"an instance that cannot write does not hear an operator", shared,
			"werr != nil && (c.Breaker.Name == Paused) != wasPaused", "werr != nil && wasPaused && !wasPaused",
			pkg, "TestAnInstanceThatCannotWriteTheControlDocumentGoesByItsOwnCopy",
		},
	}
}
