package main

// runsTable are the mutants of runs that the crash test kills. Whatever the timer mends by itself is none: a message may be lost.
func runsTable() []mutant {
	const (
		crashtest  = "internal/crashtest"
		checkpoint = "TestEverySingleFault/checkpoint"
		leftBehind = "TestEverySingleFault/left-behind"
		letters    = "TestEverySingleFault/letters"
	)
	return []mutant{
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
			"run: a replay takes no failed document over", "internal/run/worker.go",
			"		over = []invoice.Status{invoice.Failed}\n", "		over = nil\n", crashtest, "TestARunIsFoundBehindAGateThatNobodyProbes",
		},
		{
			"run: nobody goes on with an abandoned run", "internal/run/recovery.go",
			"		case abandoned(row, closed) && !fault.IsDependency(err):\n", "		case false:\n", crashtest, leftBehind,
		},
		{
			"run: the timer ends no run", "internal/run/recovery.go",
			"case row.Cancel || !row.HandedOffAt.IsZero():", "case row.Cancel:", crashtest, checkpoint,
		},
		{
			"run: nobody takes batches from the dead", "internal/run/recovery.go",
			"Bury(ctx, r.o.SysName, stale, released, mostSent)", "Bury(ctx, r.o.SysName, stale+never, released+never, mostSent)", crashtest, leftBehind,
		},
		{
			"run: a lost message is never sent again", "internal/run/recovery.go",
			"err == nil && some {", "err == nil && some && silent < 0 {", crashtest, leftBehind,
		},
		{
			"run: the timer waits behind a gate for somebody to probe", "internal/run/recovery.go",
			"!state.Due(r.o.Now()) || forDocuments(state, r.o.Now()) {\n\t\treturn", "true {\n\t\treturn",
			crashtest, "TestARunIsFoundBehindAGateThatNobodyProbes",
		},
		{
			"run: the timer only reads where a full database wants a write", "internal/run/recovery.go",
			"state.Kind == fault.Quota", "false", crashtest, "TestARunIsFoundBehindAGateThatNobodyProbes/quota",
		},
		{
			"run: the timer does nothing beside a systemic gate whose probe is due", "internal/run/recovery.go",
			"if state.Open() && !forDocuments(state, r.o.Now()) {", "if state.Open() {",
			"internal/run", "TestEveryGateThatIsMendedLetsARunGoOn",
		},
		{
			"run: the books claim a probe that only a document can answer", "internal/writer/gate.go",
			"return s.Kind != fault.Systemic && (s.Kind != fault.Quota || writes)", "return s.Kind != fault.Quota || writes",
			"internal/run", "TestARunGoesOnByItselfWhenASystemicGateIsMended",
		},
		{
			"run: a worker whose probe failed does not let go of its batch", "internal/run/kit.go",
			"return k.use(ctx, k.p.Gate.GuardEnd, use)", "return k.use(ctx, k.atGate(true), use)",
			"internal/run", "TestARunGoesOnByItselfWhenASystemicGateIsMended",
		},
		{
			"run: a manager that an outage kept from letting go is counted as lost", "internal/run/manager.go",
			"(n.RunEpoch < row.Epoch || n.ManagerSilent)", "true", "internal/run", "TestAManagerThatCouldNotLetGoIsNotLost",
		},
		{
			"run: a message is put aside without evidence", "internal/run/deadletter.go",
			"	if err := r.p.Evidence.Keep(ctx, folder+\"/body\", d.Body); err != nil {\n		return err\n	}\n",
			"	_ = r.p.Evidence.Keep(ctx, folder+\"/body\", d.Body)\n", crashtest, letters,
		},
		{
			"run: an old dead letter ends a batch that was requeued", "internal/run/deadletter.go",
			"DeadLetter(ctx, n.BatchID, n.BatchAttempt, why,", "DeadLetter(ctx, n.BatchID, 1<<30, why,", crashtest, letters,
		},
	}
}
