package main

// table are the mutants: one or a few for each rule whose loss would cost rows, documents or secrets. A mutant breaks
// the rule itself. Its test decides the rule where it is made, and takes seconds.
//
// The rules of the write as SQL Server runs it are held in internal/store/sqlserver, which takes each out of its
// procedure.
func table() []mutant {
	const (
		flow      = "internal/breaker"
		commit    = "internal/commit"
		cosmos    = "internal/cosmos"
		ops       = "internal/ops"
		reconcile = "internal/reconcile"
		runs      = "internal/run"
		sqlite    = "internal/store/sqlite"
		sqlserver = "internal/store/sqlserver"
		shared    = "internal/store/shared"
	)
	const (
		poison   = commit + "/poison.go"
		judge    = commit + "/judge.go"
		states   = commit + "/states.go"
		recovery = commit + "/recover.go"
		proof    = flow + "/proof.go"
		state    = flow + "/state.go"
		breaker  = flow + "/breaker.go"
		restore  = ops + "/evidence_restore.go"
		guard    = sqlite + "/sql/shared.sql"
		prune    = sqlite + "/sql/prune.sql"
		purge    = sqlite + "/sql/purge_"
	)
	return []mutant{
		// The write: newest wins, each document is written whole or not at all, and only its content is.
		{
			"an older result is written over a newer one", guard,
			"(l.version_us, l.document_key) < (s.version_us, s.document_key)", "1 = 1",
			sqlite, "TestSink/the_newer_result_wins:_newer_first,_and_names_itself",
		},
		{
			"content that is there is written again", guard,
			"(l.hash_version = s.hash_version AND l.content_hash <> s.content_hash)", "l.hash_version = s.hash_version",
			sqlite, "TestSink/a_redelivery_leaves_a_person's_correction_alone",
		},
		{
			"a release counts for any write of the newer document", guard,
			" AND p.value ->> 4 = l.source_ts", "",
			sqlite, "TestSink/a_release_is_superseded_when_the_newer_document_was_written_with_the_same_content_again",
		},
		{
			"a release counts for any ledger row", guard,
			"p.value ->> 3 = l.write_id", "1 = 1",
			sqlite, "TestSink/a_release_of_another_row_than_the_ledger's_is_superseded",
		},
		{
			"a document that is left out wins its other lines", prune,
			"    OR EXISTS (SELECT 1 FROM {{.Item}} AS i WHERE i.doc = r.doc AND i.left_out = 1)\n", "",
			sqlite, "TestSink/a_missing_duplicate_leaves_the_whole_document_out",
		},
		{
			"rows that were not written are not missed", sqlite + "/apply.go", "	if found == expected {\n",
			"	if found <= expected {\n",
			sqlite, "TestSink/a_detail_row_that_somebody_else_deletes_in_between_is_contention,_and_nothing_is_written",
		},
		{
			"duplicates have the values of the main line", shared + "/request.go",
			"if position < 2 {", "if position < 1 {",
			sqlite, "TestSink/10_duplicates",
		},
		{
			"lines are locked in the order of documents", sqlserver + "/sql/load.sql", "ORDER BY r.detail_id, r.doc;",
			"ORDER BY r.doc, r.detail_id;",
			sqlserver, "TestStatementsGolden",
		},
		// The write leaves alone what a person edited.
		{
			"a rewrite overlooks edits of IVCE_DTL", shared + "/reconcile.go",
			"case detail != l.DetailHash:", `case detail == "":`,
			sqlite, "TestSink/a_rewrite_leaves_an_edit_of_either_table_alone,_whatever_differs",
		},
		{
			"an edited line commits its document", judge,
			"v == invoice.OutcomeEdited || v == invoice.OutcomeNotComparable {", "v == invoice.OutcomeNotComparable {",
			commit, "TestAnEditedLineCommitsNoDocument",
		},
		// The recording: one conditional patch of a document that was read whole, and no result over a later one.
		{
			"a patch has no condition", cosmos + "/documents.go", "	match := azcore.ETag(etag)\n",
			"	match := azcore.ETagAny\n",
			cosmos, "TestDocumentsOnEachPartitionKey/the_id/record_against_another_etag_changes_nothing",
		},
		{
			"a 412 counts as done", commit + "/patch.go",
			"\tcase fault.Has(err, fault.Changed):\n\t\treturn changed, nil\n",
			"\tcase fault.Has(err, fault.Changed):\n\t\treturn finished, nil\n",
			commit, "TestAfterA412/other_content",
		},
		{
			"finished work is recorded over", judge, "	case was.Status == invoice.Committed:\n", "	case false:\n",
			commit, "TestAfterA412/the_same_that_is_committed",
		},
		{
			"a rewrite's lost race is final", judge,
			"	case fault.KindOf(err) == fault.Contention:\n		return false\n",
			"	case fault.KindOf(err) == fault.Contention:\n		return true\n",
			commit, "TestARewriteThatLosesARaceComesAgain",
		},
		{
			"a rewritten key is not looked up", cosmos + "/key.go", "\t\t\tlook = true\n", "\t\t\treturn called\n",
			cosmos, "TestPartitionKeyCases/a_key_that_the_host_has_rewritten",
		},
		{
			"a projection is recorded", cosmos + "/documents.go", "\tif doc == nil {", "\tif false {",
			cosmos, "TestPartitionKeyCases/a_projection_cannot_be_recorded",
		},
		{
			"twins of a batch are written", commit + "/select.go", "n[d.ID] > 1", "n[d.ID] > 2",
			commit, "TestTwinsAreNamedAndNeitherIsWrittenOnEachWayIntoABatch",
		},
		// Blame: only a document's own failures count, and a refused request is divided until each bad document stands
		// alone.
		{
			"a failure costs no retry", states, "s.RetryCount = min(s.RetryCount+1, MaxRetries)",
			"s.RetryCount = min(s.RetryCount, MaxRetries)", commit, "TestTheTableOfBlame",
		},
		{
			"the fifth failure spends the retries", states, "s.Postponed = s.RetryCount >= MaxRetries",
			"s.Postponed = s.RetryCount+1 >= MaxRetries", commit, "TestTheTableOfBlame",
		},
		{
			"what is put off is counted", states, "	s = t.begin(s)\n	switch {\n",
			"	s = t.begin(s)\n	s.RetryCount++\n	switch {\n", commit, "TestWhatIsPutOff",
		},
		{
			"failing alone is never an own failure", judge, "w.cause = alone(cur.State, res.err)", "w.cause = res.err",
			commit, "TestADocumentThatBreaksItsConnectionStandsAlone",
		},
		{
			"a request that fails like an outage beside a heartbeat is not divided", commit + "/write.go",
			"fault.IsDependency(err) && !fault.Has(err, fault.OthersAnswered) }\n", "fault.IsDependency(err) }\n",
			commit, "TestADocumentThatBreaksItsConnectionStandsAlone",
		},
		{
			"what is undecided is blamed", commit + "/write.go",
			"fault.Wrap(fault.Contention, \"commit: apply\", codeUndecided,",
			"fault.Wrap(fault.Document, \"commit: apply\", codeUndecided,",
			commit, "TestDividingEndsAfterTwoMinutes",
		},
		{
			"parts with a line in common are sent at once", commit + "/write.go",
			"(a.names(p, lines) || !a.w.connection())", "!a.w.connection()",
			commit, "TestPartsAtOnceBlameTheBadDocumentsAndNobodyElse",
		},
		{
			"the answer of a dependency lets the other parts end", commit + "/write.go",
			"	requests, parts := errgroup.WithContext(ctx)\n", "	requests, parts := &errgroup.Group{}, ctx\n",
			commit, "TestTheFirstAnswerOfADependencyStopsAllParts",
		},
		{
			"each batch has four connections", commit + "/commit.go", "spare: c.spare,\n",
			"spare: make(chan struct{}, cap(c.spare)),\n",
			commit, "TestLockedPartsLeaveConnectionsToOthers",
		},
		// The breaker: its states, what counts as a failure, who probes, and which database it refuses.
		{
			"one hiccup that hits many requests opens the breaker", breaker,
			" && now.Sub(b.lastFailure) < repeatEvery; !together {", " && false; !together {", flow,
			"TestRequestsThatFailTogetherCountOnce",
		},
		{
			"requests are made beside an open breaker", breaker,
			"	case state.Stopped(), n > state.MaxDocuments():\n", "	case n > state.MaxDocuments():\n", flow,
			"TestFiveFailuresThatSpanFifteenSecondsOpenIt",
		},
		{
			"another writer's turn is an outage", breaker, "	case IsRefusal(err): // another writer's turn\n",
			"	case false:\n", commit, "TestAnotherWritersTurnCostsNothing",
		},
		{
			"a claimed probe keeps nobody away", state,
			"			s.OpenUntil = now.Add(probeEvery + in.jitter)\n", "", flow,
			"TestAnOutageOpensProbesAndRampsUp",
		},
		{
			"a failure on the ramp is passed over", state,
			"s.Name == Paused || (s.Name == Open && !in.probe)",
			"s.Name == Paused || s.Name == HalfOpen || (s.Name == Open && !in.probe)", flow,
			"TestAnOutageOpensProbesAndRampsUp",
		},
		{
			"an outage ends a pause", state, "s.Name == Paused || (s.Name == Open && !in.probe)",
			"s.Name == Open && !in.probe", flow, "TestOnlyAnOperatorEndsAPause",
		},
		{
			"an instance that alone cannot reach SQL stops the others", breaker,
			"c.lastReachedByOthers(b.o.Instance).After(since) {",
			"c.lastReachedByOthers(b.o.Instance).After(since) && since.IsZero() {", flow,
			"TestAnInstanceThatIsCutOffStopsNobody",
		},
		{
			"a write does not compare", sqlite + "/apply.go",
			"	if r.mode != commit.Preview {\n		if err := checkHeartbeat",
			"	if r.mode == \"\" {\n		if err := checkHeartbeat",
			sqlite,
			"TestSink/a_write_to_a_database_that_went_back_is_refused,_whatever_is_written,_and_a_preview_is_not",
		},
		{
			"a resume needs no force", flow + "/operator.go", "if risk = nil; c.Breaker.RefusesDatabase() {",
			"if risk = nil; false {", flow, "TestOnlyAForcedResumeAcceptsADatabaseThatWentBack",
		},
		// Proof that a document is the cause, and the hour's limit.
		{
			"poison without proof", judge, "known && j.breaker.Proven(ctx, last)", "known && !last.IsZero()", commit,
			"TestASchemaThatRefusesEverythingPoisonsNobody",
		},
		{
			"another build's success is proof", proof, "last := c.AppliedBy(b.o.Build);", "last := c.LastApplied();",
			flow, "TestProofIsPerBuild",
		},
		{
			"without proof a build gives up any number", proof, "maxUnproven = 3", "maxUnproven = 300", flow,
			"TestAFewDocumentsOfABuildMayEndWithoutProof",
		},
		{
			"the app makes as many poison messages as there are", proof,
			"taken = poison.Count < b.o.MaxPoisonPerHour &&", "taken = poison.Count >= 0 &&", flow,
			"TestTheHoursPoisonMessagesAreTheWholeApps",
		},
		// The windows of the recovery timer: the heartbeat first, fair shares, and each goes on where it stopped.
		{
			"a tick begins without a heartbeat", recovery, "	err := r.commit.breaker.Tick(ctx)\n",
			"	err := r.commit.breaker.Permit(ctx)\n", commit, "TestATickFindsAnOutageByItself",
		},
		{
			"one window takes all the failures of a tick", recovery, "mostFailing*w.quarters()/4)", "mostFailing)",
			commit, "TestTheFailuresOfATickAreShared",
		},
		{
			"a window begins at its beginning each time", recovery, "	r.stopped[w] = at\n",
			"	r.stopped[w] = place{}\n", commit, "TestTheFailuresOfATickAreShared",
		},
		// The order of evidence: it is whole before its document fails, and it is of the document that was tried.
		{
			"evidence after the mark: a failed Keep is passed over", poison,
			"	if err := p.keep(ctx, found, raw); err != nil {\n",
			"	if err := p.keep(ctx, found, raw); err != nil && false {\n",
			commit, "TestWhileBlobStorageIsDownNothingIsMarkedOrCounted",
		},
		{
			"what is kept is not what is patched", poison,
			"\t\tif now.ETag != w.doc.ETag {\n", "\t\tif now.ETag == \"\" {\n", commit,
			"TestAPoisonMessageThatChangesMeanwhileIsLookedAtAgain",
		},
		// What comes back from evidence.
		{
			"put back: forged content is taken", restore, "case doc.Hash != hash:", "case false:", ops,
			"TestForgedEvidenceIsNotPutBack",
		},
		{
			"put back: another environment's document is taken", restore, "case doc.SysName != o.o.SysName:",
			"case false:", ops, "TestForgedEvidenceIsNotPutBack",
		},
		{
			"put back: old content is written over newer", restore, "row.SourceTS >= ts", "row.SourceTS < ts", ops,
			"TestADocumentThatWasWrittenSinceIsNotPutBack",
		},
		// Runs and their messages: the two phases of a hand-off, one owner, evidence of dead letters, the dry run.
		{
			"run: a checkpoint has the watermark of the one before", runs + "/manager.go", "Watermark: mark.String()}",
			"Watermark: before.String()}",
			"test/crashtest", "TestAKilledCheckpointRunGoesOnAtTheNextCheckpoint",
		},
		{
			"run: a queue that is away counts against a batch", runs + "/deliver.go",
			"	counted := !fault.IsDependency(r.err)\n", "	counted := r.err != nil\n", runs,
			"TestAQueueThatIsAwayDuringTheHandOffCostsNothing/both_queues_false",
		},
		{
			"run: two workers have a batch", shared + "/runs/batch_claim.sql",
			"owner IS NULL OR epoch = @shown", "1 = 1",
			sqlite, "TestRunStore/the_answers_to_a_claim",
		},
		{
			"run: a dead letter ends another environment's batch", shared + "/run_store_batches.go",
			" || of.SysName != s.engine.SysName", "",
			sqlite, "TestRunStore/a_claim_and_a_dead_letter_leave_a_foreign_batch_alone",
		},
		{
			"run: a message is dead-lettered without evidence", runs + "/deadletter.go",
			"return r.keepEvidence(ctx, folder, in, why.full)",
			"_ = r.keepEvidence(ctx, folder, in, why.full); return nil",
			runs, "TestEvidenceComesBeforeState",
		},
		{
			"a dry run starts a run", ops + "/run_start.go", "err != nil || p.dryRun || (res", "err != nil || (res",
			ops, "TestADryRunOfARunCountsAndChangesNothing",
		},
		// Comparisons: two looks make a finding, and the night mends only what was written and nobody edited.
		{
			"a first look finds", reconcile + "/passes.go", "	case w.at.Looked == 0:\n",
			"	case w.at.Looked < 0:\n", reconcile, "TestAWriteUnderWayIsNoFinding",
		},
		{
			"what changed between the looks is found", reconcile + "/look.go", "case same && v.seen.Mark == f.Mark:",
			"case same:", reconcile, "TestWhatChangesBetweenTheLooks",
		},
		{
			"the night mends what is not committed", reconcile + "/table.go",
			"RowsNoTracking}, Class: TrackingMissing,\n", "RowsNoTracking}, Class: TrackingMissing, Mends: true,\n",
			reconcile, "TestJudgeKeepsThePromises",
		},
		{
			"the night mends what may be edited", reconcile + "/table.go", "LedgerOlder}, Class: Stale,\n",
			"LedgerOlder}, Class: Stale, Mends: true,\n",
			reconcile, "TestJudgeKeepsThePromises",
		},
		{"a night mends what is people's", ops + "/run_findings.go", ", Mends: true}", "}", ops, "TestTheNightMends"},
		{
			"a forged mark hides its lines", reconcile + "/states.go", "; !audited {", "; false && !audited {",
			reconcile, "TestAForgedMarkHidesNoEditedRow",
		},
		{
			"purge: a person's marks go", purge + "audit_log.sql", "a.action <> 'mark-committed' AND ", "", sqlite,
			"TestRetention/never:_the_audit_log,_but_as_its_own_row_says",
		},
		{
			"a night mends without a bound", ops + "/run_findings.go", "found = found[:mendedANight]",
			"_ = found[:mendedANight]", ops, "TestTheNightMends",
		},
		// Who may act, and who sees values.
		{
			"a reader acts", "internal/opsapi/role.go", "	if w.May() || w.Role == r.Role {\n",
			"	if w.May() || w.Role == Reader {\n", "handlers", "TestAKeyHasARole",
		},
		{
			"a reader sees values", "internal/opsapi/role.go", "				v.Field(i).SetZero()\n",
			"				hide(v.Field(i))\n", "handlers", "TestAReaderSeesNoValues",
		},
		{
			"a reader's page asks for values", "internal/ui/documents.go", "if v.Who.May() { // a reader's",
			"if true { // a reader's", "test/storybook", "TestAPageAsksForContentOnlyForAnOperator",
		},
		// The purge deletes what is old, of its environment, and nothing that a run or a person still needs.
		{
			"purge: young runs go", purge + "run.sql", `r.ended_at < {{template "before"}}`, "@days > 0", sqlite,
			"TestRetention/never:_what_is_younger",
		},
		{
			"purge: error details of a running run go", purge + "error_details.sql",
			"\n        AND NOT EXISTS (SELECT 1 FROM sqlwriter_run AS r WHERE r.run_id = e.run_id AND r.status = 'running')", "",
			sqlite, "TestRetention/never:_a_running_run_and_its_error_details",
		},
		{
			"purge: entries of all environments go", purge + "audit_log.sql", "a.sys_name = @sys_name AND ", "", sqlite,
			"TestRetention/never:_another_environment's_rows",
		},
		{
			"purge: the audit log goes with the rest", purge + "audit_log.sql", "'-' || k.kept_days || ' days'",
			"'-' || @days || ' days'", sqlite, "TestRetention/never:_the_audit_log,_but_as_its_own_row_says",
		},
		// What operators are told is so.
		{
			"the flow does not name SQL at its first failure", ops + "/flow.go", "sql.State == DepFailing {", "false {",
			ops, "TestEachPlantedFaultIsNamed",
		},
		{
			"a new poison message has no beginning", ops + "/attention.go", "g.Last.After(latest)", "latest.IsZero()",
			ops, "TestEachNewPoisonMessageHasABeginning",
		},
		{
			"Health is ready beside a database that went back", "internal/app/status.go",
			"			r.Status = statusLive\n", "", "internal/app", "TestHealthIsNotReadyForADatabaseThatWentBack",
		},
	}
}
