// Package condition has the conditions of the app that a person must know of: what each means, what to do about it, and
// who is told. The status, Health, the log, the alerts and explain say of a condition what stands here.
package condition

import (
	"slices"
	"strings"
	"time"
)

// Severity says who is told.
type Severity string

// The severities.
const (
	// Wake: somebody must act now, also at night. Tell: somebody must act during the day.
	Wake Severity = "wake"
	Tell Severity = "tell"
)

// The codes of the conditions, most urgent first.
const (
	DatabaseRefused   = "database_refused"
	DatabaseBehind    = "database_behind"
	FlowStopped       = "flow_stopped"
	SettingsInvalid   = "settings_invalid"
	DependencyFailing = "dependency_failing"
	TimerSilent       = "timer_silent"
	HandlerRestarts   = "handler_restarts"
	FeedMissed        = "feed_missed"
	MassFailure       = "mass_failure"
	SecondWriter      = "second_writer"
	ManualReview      = "manual_review"
	Mistake           = "mistake"
	CutOff            = "cut_off"
	FlowPaused        = "flow_paused"
	PoisonLimit       = "poison_limit"
	Poison            = "poison"
	FindingsOpen      = "findings_open"
	ComparisonStands  = "comparison_stands"
	DeadLetters       = "dead_letters"
	RunWithoutManager = "run_without_manager"
	WorkWaits         = "work_waits"
	WaitsLong         = "waits_long"
	FeedLag           = "feed_lag"
	Skipped           = "skipped"
)

// Row is one condition.
type Row struct {
	Code     string
	Severity Severity
	// After is how long it lasts before the log tells it: what often ends by itself has two ticks. The status shows it
	// at once.
	After time.Duration
	// Events are those whose lines tell it at once. The recovery timer tells at each tick what the status shows.
	Events []string
	// Means says what is so, Do what a person does about it.
	Means, Do string
	// Page is the heading of docs/runbook.md that says more.
	Page string
}

// Table has every condition, most urgent first.
func Table() []Row {
	return []Row{
		{
			DatabaseRefused, Wake, 0, nil, "SQL is not the database that was written to last; nothing is written",
			"find out which database is the right one; only then connect it, or accept this one",
			"The database went back",
		},
		{
			DatabaseBehind, Tell, 0, nil,
			"an operator accepted a database that lacks writes; documents say that it has them",
			"give the command that it names, and look again; then `sqlwriterctl finding compare --all --why TEXT`",
			"Restored from a backup",
		},
		{
			FlowStopped, Wake, 0, nil, "failures of SQL stopped the flow of all instances",
			"mend what the cause names; it goes on by itself", "The flow",
		},
		{
			SettingsInvalid, Wake, 0,
			[]string{"settings_invalid"},
			"the settings are invalid: batches are refused until they are corrected",
			"correct the settings that Health and `problems` of the event name", "CommitResults answers 5xx",
		},
		{
			DependencyFailing, Wake, 10 * time.Minute, nil,
			"a dependency fails, from its first failure on; the flow may run still",
			"mend it; `sqlwriterctl explain CODE` says what its code means", "A dependency fails",
		},
		{
			TimerSilent, Wake, 0, nil,
			"RecoverRetries has not counted for two ticks, or never: retries, postponed documents and what the feed missed wait for it", "find out why the timer does not run: disabled, missing, or failing", "The timer is silent",
		},
		{
			HandlerRestarts, Wake, 0, nil,
			"the handler ends and is started again; the host gives up at the third end in 30 minutes",
			"read the reason of `handler_failed`, or the lines before the end", "The handler restarts",
		},
		{
			FeedMissed, Wake, 0,
			[]string{"feed_missed"},
			"the change feed did not bring documents that were due; the timer commits them, late",
			"look for a document of 64 levels or more, else restart the app", "The feed stands still",
		},
		{
			MassFailure, Wake, 0,
			[]string{"mass_failure"},
			"20 documents or more began to fail with one code; others go on",
			"look at the last deployment of the app or the schema", "The flow",
		},
		{
			SecondWriter, Wake, 0,
			[]string{"second_writer"},
			"another program finishes documents of this environment; it looks at no ledger, so an older result may have overwritten a newer one", "stop that program; then adopt what it wrote, and compare", "A second writer",
		},
		{
			ManualReview, Tell, 0,
			[]string{"document_too_large", "poison_unmarked"},
			"MANUAL REVIEW: the lines of a document could not be marked, or its outcome could not be recorded",
			"compare the lines that the event names by hand; then mark the document as committed, or mend the cause and retry it", "A document was repaired by hand",
		},
		{
			Mistake, Tell, 0,
			[]string{
				"panic", "invocation_left", "invocation_failed", "document_error", "function_unknown",
				"comparison_impossible", "comparison_failed",
			},
			"the app made a mistake; its other work goes on",
			"keep the log line with its stack and report it: it is a bug of the SQL Writer", "Mistakes of the app",
		},
		{
			CutOff, Tell, 0,
			[]string{"instance_cut_off"},
			"this instance alone cannot reach SQL and leaves its documents to the others",
			"restart the instance if it lasts", "The flow",
		},
		{
			FlowPaused, Tell, 24 * time.Hour, nil,
			"an operator paused the flow; documents wait and are counted nothing",
			"`sqlwriterctl flow resume --why TEXT` once the reason for the pause is gone", "Hold everything",
		},
		{
			PoisonLimit, Tell, 0,
			[]string{"poison_limit"},
			"this hour's limit of poison messages is reached: such documents stay retry_scheduled",
			"mend the cause, or raise MAX_POISON_PER_HOUR; nothing is lost", "Poison messages pile up",
		},
		{
			Poison, Tell, 0, nil, "documents failed for good in the last 60 minutes",
			"`sqlwriterctl document list --status failed` lists them; mend the cause, then `sqlwriterctl document retry`", "Try failed documents again",
		},
		{
			FindingsOpen, Tell, 0, nil,
			"a comparison found rows that do not fit their documents; of what the night mends only what the next one found again", "`sqlwriterctl finding list` lists them, `sqlwriterctl explain CLASS` says what to do about one", "Numbers do not match",
		},
		{
			ComparisonStands, Tell, 0, nil, "a comparison has not moved for 26 hours",
			"look at the ticks' errors; the nights wait for it", "Numbers do not match",
		},
		{
			DeadLetters, Tell, 0,
			[]string{"message_dead_lettered"},
			"a message of a run is a dead letter, or a queue has dead letters that no function has taken",
			"see whether BatchManager and BatchWorker run; read `message.json` in its evidence", "Runs",
		},
		{
			RunWithoutManager, Tell, 10 * time.Minute, nil,
			"a run does not go on: its manager is silent, or none has it for long",
			"nothing: the timer sends its message again, and executes it itself while Service Bus is away; `sqlwriterctl run resume RUN --why TEXT` does it at once", "Runs",
		},
		{
			WorkWaits, Tell, 0, nil, "messages of the queues, or batches of a run, wait for an hour or more",
			"see whether BatchManager and BatchWorker run", "Runs",
		},
		{
			WaitsLong, Tell, 0, nil, "a document waits for four hours or more; all its retries take about two",
			"`sqlwriterctl document why ID` says why", "Why is this document where it is",
		},
		{
			FeedLag, Tell, 0, nil, "the change feed is five minutes or more behind",
			"see whether SQL or Cosmos DB is slow; a run of kind drain works off a backlog", "The feed is behind",
		},
		{
			Skipped, Tell, 0, nil,
			"documents of another environment came, for the first time in the last 24 hours; this app leaves them alone", "is the name a mistake? Correct request_details.sys_name, and the program that writes it", "Documents of another environment",
		},
	}
}

// Of returns the row of a code, in any case; false when there is none.
func Of(code string) (Row, bool) {
	return find(func(r Row) bool { return strings.EqualFold(r.Code, code) })
}

// ToldBy returns the condition that the lines of an event tell; false when they tell none.
func ToldBy(event string) (Row, bool) {
	return find(func(r Row) bool { return slices.Contains(r.Events, event) })
}

func find(is func(Row) bool) (Row, bool) {
	all := Table()
	i := slices.IndexFunc(all, is)
	if i < 0 {
		return Row{}, false
	}
	return all[i], true
}

// Link is the section of docs/runbook.md that says more.
func (r Row) Link() string {
	return "docs/runbook.md#" + strings.ReplaceAll(strings.ToLower(r.Page), " ", "-")
}
