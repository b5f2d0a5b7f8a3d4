package main

// eventsTable are mutants of the log.
func eventsTable() []mutant {
	const (
		pkg   = "internal/events"
		file  = pkg + "/events.go"
		level = "TestTheHostSeesTheLevelOfEachEvent"
	)
	return []mutant{
		{"an error with the word warn is a warning at the host", file, "written, to = withoutWarn(line), s.stderr", "written, to = line, s.stderr", pkg, level},
		{"a warning goes to stdout", file, "	case level == zerolog.WarnLevel:\n		to = s.stderr\n", "	case level == zerolog.WarnLevel:\n", pkg, level},
		{"an inner piece of work forgets the outer ids", file, "ids.completed(idsOf(ctx))", "ids", pkg, "TestIDsComeFromTheContext"},
		{"a batch's lines have no ids", "internal/commit/commit.go", "newTally(b, events.For(ctx, c.o.Log)", "newTally(b, events.For(context.Background(), c.o.Log)", "internal/commit", "TestEachDocumentHasALineWithTheIDsOfItsWork"},
		{"the text of an unclassified error is logged", pkg + "/fields.go", "	if e := fault.As(err); e != nil {\n		f.Reason = e.Reason\n", "	if err != nil {\n		f.Reason = err.Error()\n", pkg, "TestAReasonIsOursOrNone"},
		{"a second writer is not told", "internal/app/open.go", "		a.adoptedAt.Store(at)\n", "		_ = at\n", "internal/app", "TestNothingIsCommittedBeforeTheLedgerIsAdopted"},
		{"a stack is lost", file, "	f.Stack = string(debug.Stack())\n", "	_ = debug.Stack\n", "internal/run", "TestAPanicInCommitFailsTheBatchBeforeTheMessageIsGivenBack"},
		{"an alert asks for an event that nobody writes", "internal/events/table.go", `TickDone            Name = "tick_done"`, `TickDone            Name = "tick_ended"`, "internal/ops", "TestGoldenEachConditionHasItsLine"},
	}
}
