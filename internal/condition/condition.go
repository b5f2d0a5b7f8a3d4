// Package condition has the conditions of the app that a person must know of: what each means, what to do about it, and
// who is told. The status, Health, the log, the alerts and explain say of a condition what stands here.
package condition

import (
	"regexp"
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
	OtherMapping      = "other_mapping"
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
			Code: DatabaseRefused, Severity: Wake, After: 0, Events: nil,
			Means: "SQL is not the database that was written to last; nothing is written",
			Do:    "find out which database is the right one; only then connect it, or accept this one",
			Page:  "The database went back",
		},
		{
			Code: DatabaseBehind, Severity: Tell, After: 0, Events: nil,
			Means: "an operator accepted a database that lacks writes; documents say that it has them",
			Do:    "give the command that it names, and look again; then `sqlwriterctl finding compare --all --why TEXT`",
			Page:  "Restored from a backup",
		},
		{
			Code: FlowStopped, Severity: Wake, After: 0, Events: nil,
			Means: "failures of SQL stopped the flow of all instances",
			Do:    "mend what the cause names; it goes on by itself", Page: "The flow",
		},
		{
			Code: SettingsInvalid, Severity: Wake, After: 0,
			Events: []string{"settings_invalid"},
			Means:  "the settings are invalid: batches are refused until they are corrected",
			Do:     "correct the settings that Health and `problems` of the event name",
			Page:   "CommitResults answers 5xx",
		},
		{
			Code: DependencyFailing, Severity: Wake, After: 10 * time.Minute, Events: nil,
			Means: "a dependency fails, from its first failure on; the flow may run still",
			Do:    "mend it; `sqlwriterctl explain CODE` says what its code means", Page: "A dependency fails",
		},
		{
			Code: TimerSilent, Severity: Wake, After: 0, Events: nil,
			Means: "RecoverRetries has not counted for two ticks, or never: retries, postponed documents and what the feed missed wait for it", Do: "find out why the timer does not run: disabled, missing, or failing", Page: "The timer is silent",
		},
		{
			Code: HandlerRestarts, Severity: Wake, After: 0, Events: nil,
			Means: "the handler ends and is started again; the host gives up at the third end in 30 minutes",
			Do:    "read the reason of `handler_failed`, or the lines before the end", Page: "The handler restarts",
		},
		{
			Code: FeedMissed, Severity: Wake, After: 0,
			Events: []string{"feed_missed"},
			Means:  "the change feed did not bring documents that were due; the timer commits them, late",
			Do:     "look for a document of 64 levels or more, else restart the app", Page: "The feed stands still",
		},
		{
			Code: MassFailure, Severity: Wake, After: 0,
			Events: []string{"mass_failure"},
			Means:  "20 documents or more began to fail with one code; others go on",
			Do:     "look at the last deployment of the app or the schema", Page: "The flow",
		},
		{
			Code: SecondWriter, Severity: Wake, After: 0,
			Events: []string{"second_writer"},
			Means:  "another program finishes documents of this environment; it looks at no ledger, so an older result may have overwritten a newer one", Do: "stop that program; then adopt what it wrote, and compare", Page: "A second writer",
		},
		{
			Code: OtherMapping, Severity: Tell, After: 0, Events: nil,
			Means: "the app writes by another mapping than the last `migrate up` chose: a file of MAPPING was forgotten, or a new one is not deployed everywhere", Do: "deploy the chosen mapping; if the app's is meant, `sqlwriterctl migrate up --new-mapping`", Page: "Another mapping",
		},
		{
			Code: ManualReview, Severity: Tell, After: 0,
			Events: []string{"document_too_large", "poison_unmarked"},
			Means:  "MANUAL REVIEW: the lines of a document could not be marked, or its outcome could not be recorded",
			Do:     "compare the lines that the event names by hand; then mark the document as committed, or mend the cause and retry it", Page: "A document was repaired by hand",
		},
		{
			Code: Mistake, Severity: Tell, After: 0,
			Events: []string{
				"panic", "invocation_left", "invocation_failed", "document_error", "function_unknown",
				"comparison_impossible", "comparison_failed",
			},
			Means: "the app made a mistake; its other work goes on",
			Do:    "keep the log line with its stack and report it: it is a bug of the SQL Writer",
			Page:  "Mistakes of the app",
		},
		{
			Code: CutOff, Severity: Tell, After: 0,
			Events: []string{"instance_cut_off"},
			Means:  "this instance alone cannot reach SQL and leaves its documents to the others",
			Do:     "restart the instance if it lasts", Page: "The flow",
		},
		{
			Code: FlowPaused, Severity: Tell, After: 24 * time.Hour, Events: nil,
			Means: "an operator paused the flow; documents wait and are counted nothing",
			Do:    "`sqlwriterctl flow resume --why TEXT` once the reason for the pause is gone",
			Page:  "Hold everything",
		},
		{
			Code: PoisonLimit, Severity: Tell, After: 0,
			Events: []string{"poison_limit"},
			Means:  "this hour's limit of poison messages is reached: such documents stay retry_scheduled",
			Do:     "mend the cause, or raise MAX_POISON_PER_HOUR; nothing is lost", Page: "Poison messages pile up",
		},
		{
			Code: Poison, Severity: Tell, After: 0, Events: nil,
			Means: "documents failed for good in the last 60 minutes",
			Do:    "`sqlwriterctl document list --status failed` lists them; mend the cause, then `sqlwriterctl document retry`", Page: "Try failed documents again",
		},
		{
			Code: FindingsOpen, Severity: Tell, After: 0, Events: nil,
			Means: "a comparison found rows that do not fit their documents; of what the night mends only what the next one found again", Do: "`sqlwriterctl finding list` lists them, `sqlwriterctl explain CLASS` says what to do about one", Page: "Numbers do not match",
		},
		{
			Code: ComparisonStands, Severity: Tell, After: 0, Events: nil,
			Means: "a comparison has not moved for 26 hours",
			Do:    "look at the ticks' errors; the nights wait for it", Page: "Numbers do not match",
		},
		{
			Code: DeadLetters, Severity: Tell, After: 0,
			Events: []string{"message_dead_lettered"},
			Means:  "a message of a run is a dead letter, or a queue has dead letters that no function has taken",
			Do:     "see whether BatchManager and BatchWorker run; read `message.json` in its evidence", Page: "Runs",
		},
		{
			Code: RunWithoutManager, Severity: Tell, After: 10 * time.Minute, Events: nil,
			Means: "a run does not go on: its manager is silent, or none has it for long",
			Do:    "nothing: the timer sends its message again, and executes it itself while Service Bus is away; `sqlwriterctl run resume RUN --why TEXT` does it at once", Page: "Runs",
		},
		{
			Code: WorkWaits, Severity: Tell, After: 0, Events: nil,
			Means: "messages of the queues, or batches of a run, wait for an hour or more",
			Do:    "see whether BatchManager and BatchWorker run", Page: "Runs",
		},
		{
			Code: WaitsLong, Severity: Tell, After: 0, Events: nil,
			Means: "a document waits for four hours or more; all its retries take about two",
			Do:    "`sqlwriterctl document why ID` says why", Page: "Why is this document where it is",
		},
		{
			Code: FeedLag, Severity: Tell, After: 0, Events: nil,
			Means: "the change feed is five minutes or more behind",
			Do:    "see whether SQL or Cosmos DB is slow; a run of kind drain works off a backlog",
			Page:  "The feed is behind",
		},
		{
			Code: Skipped, Severity: Tell, After: 0, Events: nil,
			Means: "documents of another environment came, for the first time in the last 24 hours; this app leaves them alone", Do: "is the name a mistake? Correct request_details.sys_name, and the program that writes it", Page: "Documents of another environment",
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

// Says is the condition in one line, as Health and doctor say it.
func (r Row) Says() string { return r.Code + ": " + r.Means + " (" + r.Link() + ")" }

// Command is the first command of what a person does about a code, else the one that explains the code.
func Command(do, code string) string {
	if m := regexp.MustCompile("`((?:az|make|sqlwriterctl) [^`]+)`").FindStringSubmatch(do); m != nil {
		return m[1]
	}
	return "sqlwriterctl explain " + code
}

// Link is the section of docs/runbook.md that says more.
func (r Row) Link() string {
	return "docs/runbook.md#" + strings.ReplaceAll(strings.ToLower(r.Page), " ", "-")
}
