package main

// startTable are the mutants of the process's start and end, and of what is checked at the start.
func startTable() []mutant {
	const (
		pkg   = "internal/app"
		serve = pkg + "/serve.go"
	)
	return []mutant{
		{"a process without its host is started again without end", serve, "code, why, within = ExitFailed,", "code, why, within = ExitRestart,", pkg, "TestAProcessWithoutItsHostEnds"},
		{"Health is silent about a missing time to live", pkg + "/open.go", "\t\tcase set:\n", "\t\tcase set || err == nil:\n", pkg, "TestALeaseContainerThatWasMendedIsNoProblem"},
		{"the local lease container has no time to live", "test/emulators/cosmosdb/provision/provision.go", "\tif c.TimeToLive {\n", "\tif false {\n", "test/emulators/cosmosdb/provision", "TestMakingTwiceChangesNothing"},
		{"a staged root beside make run divides the feed with it", "cmd/stage/staging/stage.go", "(!running || s.Functions != \"\")", "!running", "cmd/stage/staging", "TestOnlyServersWithoutAHostGiveTheirSettings"},
		{"a function that was not published is no failure", "cmd/published/main.go", "\tfor _, name := range missing {\n", "\tfor _, name := range missing[:0] {\n", "cmd/published", "TestAFunctionThatTheHostLeftOutIsNamed"},
		{"the host is looked for once a minute", serve, "	parentPoll  = time.Second\n", "	parentPoll  = time.Minute\n", pkg, "TestAnotherParentIsNoticedWithinASecond"},
	}
}
