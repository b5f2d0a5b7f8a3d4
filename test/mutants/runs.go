package main

// runsTable has the mutants of runs that test/crashtest detects. A fault that the timer repairs makes no mutant: a message may be lost.
func runsTable() []mutant {
	const (
		crashtest  = "test/crashtest"
		checkpoint = "TestEverySingleFault/checkpoint"
		leftBehind = "TestEverySingleFault/left-behind"
		letters    = "TestEverySingleFault/dead-letters"
	)
	return []mutant{
		{
			"a run that leaves documents out brings a database up to date", "internal/run/types.go",
			"reflect.ValueOf(f).IsZero()", "!reflect.ValueOf(f).IsZero()", "internal/ops", "TestARestoredDatabaseIsBroughtUpToDateStepByStep",
		},
		{
			"a run since a later time brings a database up to date", "internal/ops/behind.go",
			" || from.After(since) {", " || from.Before(since) {", "internal/ops", "TestARestoredDatabaseIsBroughtUpToDateStepByStep",
		},
		{
			"a database that was not looked at is not accepted", "internal/ops/flow.go",
			"o.p.Breaker.Force(ctx, by, why)", "false, o.p.Breaker.Resume(ctx, by, why)", "internal/ops", "TestARestoredDatabaseIsBroughtUpToDateStepByStep",
		},
		{
			"a new database need not be adopted", "internal/ops/flow.go", "{ return s.Check(ctx) }", "{ return nil }", "internal/ops", "TestANewDatabaseIsFilled",
		},
		{
			"a running flow accepts a database without telling", "internal/breaker/state.go", `s.name() == Closed && in.forced == ""`, "s.name() == Closed", "internal/breaker", "TestARestoredDatabaseIsAcceptedInEveryState",
		},
		{
			"a rewrite of findings overwrites lines that need nobody's word", "internal/ops/run_findings.go",
			"		if f.Overwrites() {\n", "		{\n", "internal/ops", "TestARewriteOfFindingsWritesExactlyTheirLines",
		},
		{
			"a rewrite of findings overwrites what was edited after the comparison", "internal/reconcile/finding.go",
			"!f.Mends && ", "", "internal/ops", "TestARewriteOfFindingsLeavesLaterEditsAlone",
		},
		{
			"a dry run of findings says what a write would do", "internal/ops/diff.go",
			"mode == commit.Rewrite && row.Verdict == commit.Unchanged", "mode != commit.Rewrite && row.Verdict == commit.Unchanged", "internal/ops", "TestADryRunOfFindingsShowsTheColumns",
		},
		{
			"a dry run of findings shows the document's other lines", "internal/ops/diff.go",
			"lines != nil && !lines[row.DetailID]", "false", "internal/ops", "TestADryRunOfFindingsShowsTheColumns",
		},
		{
			"run: a checkpoint has the watermark of the one before", "internal/run/manager.go",
			"Watermark: mark.String()}", "Watermark: before.String()}",
			crashtest, "TestAKilledCheckpointRunGoesOnAtTheNextCheckpoint",
		},
		{
			"run: documents that have a row are taken again", "internal/run/source.go",
			"				if yes {\n", "				if yes && false {\n", crashtest, checkpoint,
		},
		{
			"run: a queue that is away counts against a batch", "internal/run/deliver.go",
			"	counted := !fault.IsDependency(r.err)\n", "	counted := r.err != nil\n", crashtest, "TestEverySingleFault/two_phase",
		},
		{
			"run: a document that was deleted has no outcome", "internal/run/worker.go",
			"range absent(ids, raws) {", "range absent(nil, raws) {", crashtest, "TestEverySingleFault/worker",
		},
		{
			"run: a replay takes no failed document over", "internal/run/kinds.go",
			"			TakeOver: []invoice.Status{invoice.Failed}, ", "			", crashtest, "TestARunIsFoundBehindAnOpenBreakerWithoutTraffic",
		},
		{
			"run: nobody goes on with an abandoned run", "internal/run/recovery.go",
			"		case row.NextIn <= 0 && row.Silent >= r.staleAfter(ctx, RunSilent) && !fault.IsDependency(err):\n", "		case false:\n", crashtest, leftBehind,
		},
		{
			"run: the timer ends no run", "internal/run/recovery.go",
			"case row.Cancel || !row.HandedOffAt.IsZero():", "case row.Cancel:", crashtest, checkpoint,
		},
		{
			"run: batches are not taken from dead workers", "internal/run/recovery.go",
			"r.staleAfter(ctx, workerStale), r.staleAfter(ctx, releasedFor), maxRescued)", "never, never, maxRescued)", crashtest, leftBehind,
		},
		{
			"run: a lost message is never sent again", "internal/run/recovery.go",
			"r.staleAfter(ctx, silentAfter), maxRescued)", "never, maxRescued)", crashtest, leftBehind,
		},
		{
			"run: an owner that could not write is dead", "internal/run/base.go",
			"closed && b.o.Now().Sub(since) >= silence {", "closed || !closed || since.IsZero() {", "internal/run", "TestNoOwnerIsStaleUntilTheBreakerWasClosedForLong",
		},
		{
			"run: the store is used without asking the breaker", "internal/run/base.go",
			"	if err := b.p.Breaker.Permit(ctx); err != nil {\n		return err\n	}\n", "", "internal/run", "TestRunsStartNothingWhileTheBreakerIsOpen",
		},
		{
			"run: the end of started work asks the breaker", "internal/run/worker.go",
			"return w.withStoreAlways(context.WithoutCancel(ctx), use)", "return w.withStore(context.WithoutCancel(ctx), use)",
			"internal/run", "TestStartedWorkIsFinishedWhileTheBreakerIsOpen",
		},
		{
			"run: a released batch does not show the epoch", "internal/run/worker.go",
			"			p.Epoch = claimed.Lease.Epoch\n", "", "internal/run", "TestAnUnreleasedBatchIsTakenOverAtOnce",
		},
		{
			"run: each release of a batch is audited", "internal/run/worker.go",
			"w.process(ctx, claimed, p.Deferral == 0)", "w.process(ctx, claimed, p.Deferral >= 0)", "internal/run", "TestOutagesOfDocumentsCountNoLostWorker",
		},
		{
			"run: each claim has a worker's row of its own", "internal/run/base.go",
			"b.o.Instance + \"\\n\" + of", "b.o.Instance + of + b.o.Now().String()", "internal/run", "TestOutagesOfDocumentsCountNoLostWorker",
		},
		{
			"run: a released run does not show the epoch", "internal/run/manager.go",
			"	p.Epoch = h.lease.Epoch\n", "	p.Epoch = h.lease.Epoch - 1\n", "internal/run", "TestAManagerThatCouldNotReleaseIsNotLost",
		},
		{
			"run: the timer's message lets the owner off", "internal/run/payload.go",
			"		p.Epoch--\n", "", "internal/run", "TestARunThatKillsItsManagersFails",
		},
		{
			"run: a lost race ends a batch", "internal/run/base.go",
			"	return fault.IsDependency(err) || fault.KindOf(err) == fault.Contention\n", "	return fault.IsDependency(err)\n",
			"internal/run", "TestAReindexRetriesLostRaces",
		},
		{
			"run: a run takes all the room there is", "internal/run/pattern.go",
			"return max(1, room/max(1, runs))", "return room + runs - runs", "internal/run", "TestShareDividesTheLimit",
		},
		{
			"run: the timer sends more than there is room for", "internal/run/recovery.go",
			"room := r.o.MaxOutstanding - all.Busy;", "room := maxRescued + 0*all.Busy;", "internal/run", "TestTheTimerSendsWithinTheLimit",
		},
		{
			"run: a message older than its row is not dropped", "internal/store/shared/run_store_batches.go",
			"	case t.Attempt < j.Attempt:\n		return run.Outdated\n", "", "internal/store/sqlite", "TestRunStore/a_message_older_than_its_row's_attempt_gets_nothing",
		},
		{
			"run: a requeue sends no message", "internal/ops/batches.go",
			"	if note := o.notifyRun(ctx, batches[0].Run); note != \"\" {\n", "	if note := \"\"; note != \"\" {\n", "internal/ops", "TestARequeueEndsBeforeItsCallerGivesUp",
		},
		{
			"run: what was never offered is deferred", "internal/run/results.go",
			"	case outcomeSkipped, string(invoice.NotOffered):\n", "	case outcomeSkipped:\n", "internal/run", "TestARunOfNeverOfferedDocumentsCompletes",
		},
		{
			"run: the row of a run does not say that it has failures", "internal/store/shared/runs/run_with_failures.sql",
			"SET status = 'completed_with_failures'", "SET status = 'completed'", "internal/store/sqlite", "TestRunStore/a_run_that_completed_says_whether_something_is_left_to_do",
		},
		{
			"executor: the epoch of a released batch is forgotten", "internal/run/executor.go",
			"Attempt: c.Batch.Attempt, Epoch: c.Lease.Epoch}", "Attempt: c.Batch.Attempt}", "internal/run", "TestAnExecutorWaitsWhileSQLIsAway",
		},
		{
			"executor: the epoch of a released run is forgotten", "internal/run/executor.go",
			"			shown = x.shown\n", "			shown = none\n", "internal/run", "TestAnExecutorWaitsWhileSQLIsAway",
		},
		{
			"executor: a batch that ended is no progress", "internal/run/executor.go",
			"released == nil && h != nil &&", "released == nil && h != nil && false &&", "internal/run", "TestExecutorsThatMakeProgressAreNotCountedAsLost",
		},
		{
			"executor: the run stays claimed when it is left", "internal/run/executor.go",
			"		lost, failed := x.hand.release(ctx, err)\n", "		lost, failed := false, error(nil)\n", "internal/run", "TestAStoppedExecutorReleasesItsRun",
		},
		{
			"run: another environment's document is taken for one that was finished before a crash", "internal/run/results.go",
			"err == nil && d.SysName == sysName {", "err == nil {", "internal/run", "TestAnExecutorMayDieAtEveryStep",
		},
		{
			"run: a batch that was not sent does not say that the queue is away", "internal/run/recovery.go",
			"done.QueueAway = done.QueueAway || d.queueAway", "done.QueueAway = done.QueueAway || d.failed > 0", "internal/run", "TestTheTimerExecutesRunsWhileTheQueueIsAway",
		},
		{
			"run: a claim of the attempt before says that the queue has passed", "internal/store/shared/runs/jobs_silent.sql",
			"                AND c.claimed_at >= c.queued_at\n", "", "internal/store/sqlite", "TestRunStore/batches_that_wait_for_workers_are_not_lost",
		},
		{
			"run: a replay of what a run left takes its other documents, too", "internal/run/source.go",
			"[]Outcome{DocFailed, DocDeferred}", "nil", "internal/run", "TestAReplayTakesWhatARunLeft",
		},
		{
			"run: a message is dead-lettered without evidence", "internal/run/deadletter.go",
			"	if err := r.p.Evidence.Keep(ctx, folder+\"/body\", in.Body); err != nil {\n		return err\n	}\n",
			"	_ = r.p.Evidence.Keep(ctx, folder+\"/body\", in.Body)\n", crashtest, letters,
		},
		{
			"run: an old dead letter ends a batch that was requeued", "internal/run/deadletter.go",
			"DeadLetter(ctx, p.BatchID, p.BatchAttempt, why,", "DeadLetter(ctx, p.BatchID, 1<<30, why,", crashtest, letters,
		},
	}
}
