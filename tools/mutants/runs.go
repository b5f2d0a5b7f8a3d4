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
			"		return []invoice.Status{invoice.Failed}, false\n", "		return nil, false\n", crashtest, "TestARunIsFoundBehindAGateThatNobodyProbes",
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
			"!state.Due(r.o.Now()) || state.Kind != fault.Infrastructure", "true", crashtest, "TestARunIsFoundBehindAGateThatNobodyProbes",
		},
		{
			"run: a message is put aside without evidence", "internal/run/deadletter.go",
			"	if err := r.p.Evidence.Keep(ctx, folder+\"/body\", d.Body); err != nil {\n		return err\n	}\n",
			"	_ = r.p.Evidence.Keep(ctx, folder+\"/body\", d.Body)\n", crashtest, letters,
		},
		{
			"run: an old dead letter ends a batch that was requeued", "internal/run/deadletter.go",
			"|| job.Attempt > n.BatchAttempt", "|| job.Attempt < 0", crashtest, letters,
		},
	}
}
