package events

import (
	"slices"

	"github.com/rs/zerolog"
)

// The events. Table says what each means.
const (
	HandlerStarted  Name = "handler_started"
	HandlerReady    Name = "handler_ready"
	HandlerEnded    Name = "handler_ended"
	HandlerFailed   Name = "handler_failed"
	SettingsInvalid Name = "settings_invalid"

	DependencyNotOpen   Name = "dependency_not_open"
	DependencyNotClosed Name = "dependency_not_closed"
	LeasesUnfit         Name = "leases_unfit"
	TableNote           Name = "table_note"

	BatchCommitted      Name = "batch_committed"
	TickDone            Name = "tick_done"
	MessageDone         Name = "message_done"
	CallAnswered        Name = "call_answered"
	HealthAnswered      Name = "health_answered"
	InvocationPostponed Name = "invocation_postponed"
	InvocationLeft      Name = "invocation_left"
	InvocationFailed    Name = "invocation_failed"
	FunctionUnknown     Name = "function_unknown"
	Panic               Name = "panic"

	DocumentCommitted      Name = "document_committed"
	DocumentRetryScheduled Name = "document_retry_scheduled"
	DocumentError          Name = "document_error"
	DocumentFailed         Name = "document_failed"
	DocumentLeft           Name = "document_left"
	DocumentUnreadable     Name = "document_unreadable"
	DocumentUnknownStatus  Name = "document_unknown_status"
	DocumentNotFound       Name = "document_not_found"
	DocumentTooLarge       Name = "document_too_large"
	DocumentDeleted        Name = "document_deleted"
	DocumentHealed         Name = "document_healed"
	SecondWriter           Name = "second_writer"
	BatchLeft              Name = "batch_left"
	CanaryNotMarked        Name = "canary_not_marked"

	PoisonKept     Name = "poison_kept"
	PoisonUnmarked Name = "poison_unmarked"
	PoisonWaits    Name = "poison_waits"
	PoisonLimit    Name = "poison_limit"

	RewriteLeftAlone Name = "rewrite_left_alone"
	RewriteFailed    Name = "rewrite_failed"
	ShadowDiffers    Name = "shadow_differs"

	FlowChanged        Name = "flow_changed"
	FlowStopped        Name = "flow_stopped"
	InstanceCutOff     Name = "instance_cut_off"
	InstanceBack       Name = "instance_back"
	ControlUnavailable Name = "control_unavailable"
	ControlBack        Name = "control_back"
	MassFailure        Name = "mass_failure"
	FeedMissed         Name = "feed_missed"

	Attention Name = "attention"

	HandOffDone         Name = "hand_off_done"
	HandOffBroken       Name = "hand_off_broken"
	RunEnded            Name = "run_ended"
	RunEndUnchecked     Name = "run_end_unchecked"
	RunFailed           Name = "run_failed"
	ExecutionWaits      Name = "execution_waits"
	BatchFailed         Name = "batch_failed"
	MessageDeadLettered Name = "message_dead_lettered"
	CompareImpossible   Name = "comparison_impossible"
	ComparisonBegan     Name = "comparison_began"
	ComparisonEnded     Name = "comparison_ended"
	ComparisonFailed    Name = "comparison_failed"
)

// Row is one event.
type Row struct {
	Name  Name
	Level zerolog.Level
	// Says is the member message.
	Says string
	// Do says what a person does; empty for nothing, and where the condition that it tells says it. Links are relative
	// to docs.
	Do string
	// Fields are the members that its lines may have, besides level, event, time, message, ids, and the condition with
	// its severity.
	Fields []string
}

// Table has every event.
func Table() []Row {
	const debug, info, warn, problem = zerolog.DebugLevel, zerolog.InfoLevel, zerolog.WarnLevel, zerolog.ErrorLevel
	failure := []string{"kind", "code", "reason"}
	document := append([]string{"document"}, failure...)
	batch := []string{
		"http_status", "ms", "documents", "outcomes", "kinds", "retry_count", "lag_ms", "sql_requests", "sql_ms",
		"cosmos_reads", "cosmos_writes", "cosmos_ms", "mode", "columns",
	}
	tick := slices.Concat(batch,
		[]string{
			"found", "more", "missed", "oldest_s", "runs", "runs_off", "purged", "compared", "off", "flow", "state",
		})
	message := []string{"http_status", "ms", "did", "reason", "counts", "delivery_count"}
	call := slices.Concat(failure, []string{"http_status", "ms", "method", "call"})
	invocation := slices.Concat(failure, tick, []string{"did", "counts", "delivery_count", "method", "call", "stack"})
	flow := slices.Concat(failure, []string{"state", "held_by", "limit", "next_probe"})
	handOff := slices.Concat(failure,
		[]string{"documents", "batches", "sent", "unsent", "insert_ms", "send_ms", "update_ms"})
	const errorCode = "`sqlwriterctl explain CODE` says what the code means"
	return []Row{
		{Name: HandlerStarted, Level: info, Says: "the process listens", Fields: []string{"version"}},
		{
			Name: HandlerReady, Level: info, Says: "every dependency is open",
			Fields: []string{"version", "sys_name", "mode"},
		},
		{Name: HandlerEnded, Level: info, Says: "the process ends", Fields: []string{"reason", "drained"}},
		{
			Name: HandlerFailed, Level: problem, Says: "the process cannot serve, and the host starts it again",
			Do:     "read the reason; the third time in 30 minutes ends the host",
			Fields: []string{"reason"},
		},
		{
			Name: SettingsInvalid, Level: problem,
			Says:   "the settings are invalid: batches are refused until they are corrected",
			Fields: []string{"problems"},
		},

		{
			Name: DependencyNotOpen, Level: warn, Says: "a dependency is not open yet: it is tried again",
			Do:     "[CommitResults answers 5xx](runbook.md#commitresults-answers-5xx)",
			Fields: slices.Concat(failure, []string{"dependency", "again_ms"}),
		},
		{
			Name: DependencyNotClosed, Level: warn, Says: "a dependency could not be closed",
			Fields: slices.Concat(failure, []string{"dependency"}),
		},
		{
			Name: LeasesUnfit, Level: warn, Says: "the lease container is not as it must be",
			Do:     "[the lease container](runbook.md#the-lease-container-has-no-time-to-live)",
			Fields: []string{"dependency", "reason"},
		},
		{
			Name: TableNote, Level: info, Says: "something about the user's tables affects every later write",
			Do:     "read the reason: a trigger, or a column that rounds",
			Fields: []string{"reason"},
		},

		{Name: BatchCommitted, Level: info, Says: "a batch of the feed is done", Fields: batch},
		{Name: TickDone, Level: info, Says: "a tick of the recovery timer is done", Fields: tick},
		{Name: MessageDone, Level: info, Says: "a message of a run is done", Fields: message},
		{Name: CallAnswered, Level: info, Says: "an operator's call was answered", Fields: call},
		{Name: HealthAnswered, Level: debug, Says: "Health was asked", Fields: []string{"http_status", "ms"}},
		{
			Name: InvocationPostponed, Level: warn,
			Says: "not now: a dependency is unwell, and the payload comes again",
			Do:   "[CommitResults answers 5xx](runbook.md#commitresults-answers-5xx)", Fields: invocation,
		},
		{
			Name: InvocationLeft, Level: problem,
			Says: "the batch failed: its documents are left to the recovery timer, so that the feed goes on",
			Do:   "", Fields: invocation,
		},
		{Name: InvocationFailed, Level: problem, Says: "the invocation failed", Fields: invocation},
		{
			Name: FunctionUnknown, Level: problem, Says: "the host asks for a function that this build does not have",
			Do:     "[A function is missing](runbook.md#a-function-is-missing-after-a-deployment)",
			Fields: []string{"http_status"},
		},
		{
			Name: Panic, Level: problem, Says: "a panic: a mistake of the app, whose other work goes on",
			Fields: slices.Concat(document, []string{"stack"}),
		},

		{
			Name: DocumentCommitted, Level: debug, Says: "the document is committed",
			Fields: []string{"document", "line", "duplicates", "outcome", "lag_ms"},
		},
		{
			Name: DocumentRetryScheduled, Level: warn, Says: "the document was not written: it is tried again",
			Do:     "nothing, or `sqlwriterctl document why ID`",
			Fields: slices.Concat(document, []string{"line", "status", "retry_count", "retry_after"}),
		},
		{
			Name: DocumentError, Level: problem,
			Says: "the document was not written because of a mistake of the app: it is tried again",
			Do:   "", Fields: slices.Concat(document, []string{"line", "status", "retry_count", "retry_after"}),
		},
		{
			Name: DocumentFailed, Level: problem, Says: "the document is given up",
			Do:     "[Try failed documents again](runbook.md#try-failed-documents-again)",
			Fields: slices.Concat(document, []string{"line", "status", "retry_count"}),
		},
		{
			Name: DocumentLeft, Level: problem, Says: "the outcome could not be recorded: left to the recovery timer",
			Do: "read the code; the rows are right, the document does not say so yet", Fields: document,
		},
		{
			Name: DocumentUnreadable, Level: problem,
			Says: "an element of the batch has no id to record an outcome for: it is skipped",
			Do:   "find the writer of such items", Fields: slices.Concat(failure, []string{"index"}),
		},
		{
			Name: DocumentUnknownStatus, Level: problem,
			Says:   "sql_writer.status is unknown: the document is not changed",
			Do:     "correct the status; the document is not touched until then",
			Fields: []string{"document", "status"},
		},
		{
			Name: DocumentNotFound, Level: problem,
			Says: "no document has this id, which the host may have rewritten: nothing was written",
			Do:   "nothing: the recovery timer finds the document", Fields: document,
		},
		{
			Name: DocumentTooLarge, Level: problem,
			Says:   "MANUAL REVIEW: the document is too large even for the minimal outcome",
			Do:     "shrink the document; compare its rows by hand",
			Fields: slices.Concat(document, []string{"status", "outcome"}),
		},
		{
			Name: DocumentDeleted, Level: warn,
			Says:   "the document was deleted while it was written: its lines keep its content",
			Do:     "compare its lines by hand, if it was deleted because it was wrong",
			Fields: []string{"document", "outcome"},
		},
		{
			Name: DocumentHealed, Level: warn,
			Says:   "another writer committed the document: its lines had older content and were written again",
			Do:     "find the other writer",
			Fields: []string{"document"},
		},
		{
			Name: SecondWriter, Level: problem,
			Says:   "another program finished documents after the ledger was adopted",
			Fields: []string{"document", "documents"},
		},
		{
			Name: BatchLeft, Level: problem,
			Says: "this batch failed 21 times while the breaker was closed: its remaining documents are left to the recovery timer", Do: "read the code: it says which dependency it is", Fields: slices.Concat(failure, []string{"retry_count"}),
		},
		{
			Name: CanaryNotMarked, Level: warn,
			Says: "the document of `doctor --send` came and could not be marked: the batch is done",
			Do:   errorCode, Fields: document,
		},

		{
			Name: PoisonKept, Level: problem, Says: "a poison message: its evidence is kept",
			Do:     "mend the cause, then [replay](runbook.md#try-failed-documents-again)",
			Fields: slices.Concat(document, []string{"line", "evidence", "marked"}),
		},
		{
			Name: PoisonUnmarked, Level: problem,
			Says:   "MANUAL REVIEW: a poison message whose lines could not be marked AI-ERROR",
			Fields: slices.Concat(document, []string{"line", "duplicates", "evidence"}),
		},
		{
			Name: PoisonWaits, Level: problem, Says: "the document's retries are spent, and it stays retry_scheduled",
			Do: "read the reason; nothing is lost, it is tried again", Fields: document,
		},
		{
			Name: PoisonLimit, Level: problem,
			Says: "this hour's limit of poison messages is reached: such documents stay retry_scheduled",
			Do:   "", Fields: document,
		},

		{
			Name: RewriteLeftAlone, Level: info, Says: "a rewrite left lines alone",
			Fields: []string{"document", "outcome", "reason"},
		},
		{
			Name: RewriteFailed, Level: warn,
			Says: "a committed document could not be written again: it stays committed",
			Do:   errorCode, Fields: document,
		},
		{
			Name: ShadowDiffers, Level: warn, Says: "shadow: the old writer's rows are not what this app would write",
			Do: "[cutover.md](cutover.md)", Fields: slices.Concat(document, []string{"outcome", "differs_in"}),
		},

		{Name: FlowChanged, Level: info, Says: "the flow runs, or ramps up", Fields: flow},
		{
			Name: FlowStopped, Level: warn,
			Says: "the flow is stopped or paused: documents wait, and nothing is counted against them",
			Do:   "[The flow](runbook.md#the-flow)", Fields: flow,
		},
		{
			Name: InstanceCutOff, Level: warn,
			Says: "this instance cannot reach SQL while others write: it leaves its documents to them",
			Do:   "", Fields: failure,
		},
		{Name: InstanceBack, Level: info, Says: "this instance reaches SQL again", Fields: nil},
		{
			Name: ControlUnavailable, Level: warn,
			Says:   "the control document is not available: this instance goes on with its own copy",
			Do:     "nothing while it is short: no failure counts until it is available ([The flow](runbook.md#the-flow))",
			Fields: failure,
		},
		{Name: ControlBack, Level: info, Says: "the control document is available again", Fields: nil},
		{
			Name: MassFailure, Level: problem,
			Says:   "many documents began to fail with one code: the others are still processed",
			Fields: []string{"code", "documents", "since"},
		},
		{
			Name: FeedMissed, Level: problem,
			Says:   "the feed did not bring documents that were due: the recovery timer took them up",
			Fields: slices.Concat(document, []string{"documents", "oldest_s"}),
		},

		{
			Name: Attention, Level: warn, Says: "a person must look at this", Do: "[The conditions](#the-conditions)",
			Fields: []string{"since", "reason"},
		},

		{Name: HandOffDone, Level: info, Says: "a manager's hand-off is over", Fields: handOff},
		{
			Name: HandOffBroken, Level: warn,
			Says: "a manager's hand-off was interrupted: a later message continues it", Do: errorCode, Fields: handOff,
		},
		{Name: RunEnded, Level: info, Says: "a run has ended", Fields: []string{"status"}},
		{
			Name: RunEndUnchecked, Level: warn, Says: "the end of the run could not be checked: the timer will",
			Fields: failure,
		},
		{
			Name: RunFailed, Level: warn, Says: "the failure of the run could not be recorded: it is tried again",
			Fields: failure,
		},
		{
			Name: ExecutionWaits, Level: warn, Says: "a run in this process waits for a dependency",
			Do:     "[Runs](runbook.md#runs)",
			Fields: slices.Concat(failure, []string{"again_ms"}),
		},
		{
			Name: BatchFailed, Level: warn, Says: "a batch of a run failed",
			Do: "[Runs](runbook.md#runs): `batch list RUN/NUMBER` has its errors", Fields: failure,
		},
		{
			Name: CompareImpossible, Level: problem,
			Says:   "a comparison met states that exclude each other: a mistake of this program; the comparison goes on",
			Fields: slices.Concat(document, []string{"line"}),
		},
		{
			Name: ComparisonBegan, Level: info, Says: "the night's comparison began",
			Fields: []string{"comparison"},
		},
		{
			Name: ComparisonEnded, Level: info,
			Says: "a comparison ended: its counts say what it found, `edited_new` how many lines people edited since the one before", Do: "`sqlwriterctl finding list`",
			Fields: []string{"comparison", "counts"},
		},
		{
			Name: ComparisonFailed, Level: problem, Says: "a comparison ended by a mistake of the app",
			Fields: []string{"comparison", "counts", "reason"},
		},
		{
			Name: MessageDeadLettered, Level: problem, Says: "a message is a dead letter: its evidence is kept",
			Fields: []string{"reason", "evidence", "changed"},
		},
	}
}

// rows is Table by name.
var rows = byName() //nolint:gochecknoglobals // a table of constants, looked up for each line

func byName() map[Name]Row {
	all := map[Name]Row{}
	for _, r := range Table() {
		all[r.Name] = r
	}
	return all
}

func rowOf(name Name) (Row, bool) {
	r, known := rows[name]
	return r, known
}
