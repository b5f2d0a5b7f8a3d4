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
		{HandlerStarted, info, "the process listens", "", []string{"version"}},
		{HandlerReady, info, "every dependency is open", "", []string{"version", "sys_name", "mode"}},
		{HandlerEnded, info, "the process ends", "", []string{"reason", "drained"}},
		{
			HandlerFailed, problem, "the process cannot serve, and the host starts it again",
			"read the reason; the third time in 30 minutes ends the host",
			[]string{"reason"},
		},
		{
			SettingsInvalid, problem, "the settings are invalid: batches are refused until they are corrected",
			"",
			[]string{"problems"},
		},

		{
			DependencyNotOpen, warn, "a dependency is not open yet: it is tried again",
			"[CommitResults answers 5xx](runbook.md#commitresults-answers-5xx)",
			slices.Concat(failure, []string{"dependency", "again_ms"}),
		},
		{
			DependencyNotClosed, warn, "a dependency could not be closed", "",
			slices.Concat(failure, []string{"dependency"}),
		},
		{
			LeasesUnfit, warn, "the lease container is not as it must be",
			"[the lease container](runbook.md#the-lease-container-has-no-time-to-live)",
			[]string{"dependency", "reason"},
		},
		{
			TableNote, info, "something about the user's tables affects every later write",
			"read the reason: a trigger, or a column that rounds",
			[]string{"reason"},
		},

		{BatchCommitted, info, "a batch of the feed is done", "", batch},
		{TickDone, info, "a tick of the recovery timer is done", "", tick},
		{MessageDone, info, "a message of a run is done", "", message},
		{CallAnswered, info, "an operator's call was answered", "", call},
		{HealthAnswered, debug, "Health was asked", "", []string{"ms"}},
		{
			InvocationPostponed, warn, "not now: a dependency is unwell, and the payload comes again",
			"[CommitResults answers 5xx](runbook.md#commitresults-answers-5xx)", invocation,
		},
		{
			InvocationLeft, problem,
			"the batch failed: its documents are left to the recovery timer, so that the feed goes on", "", invocation,
		},
		{InvocationFailed, problem, "the invocation failed", "", invocation},
		{
			FunctionUnknown, problem, "the host asks for a function that this build does not have",
			"[A function is missing](runbook.md#a-function-is-missing-after-a-deployment)",
			[]string{"http_status"},
		},
		{
			Panic, problem, "a panic: a mistake of the app, whose other work goes on", "",
			slices.Concat(document, []string{"stack"}),
		},

		{DocumentCommitted, debug, "the document is committed", "", []string{"document", "line", "outcome"}},
		{
			DocumentRetryScheduled, warn, "the document was not written: it is tried again",
			"nothing, or `sqlwriterctl document why ID`",
			slices.Concat(document, []string{"line", "status", "retry_count", "retry_after"}),
		},
		{
			DocumentError, problem, "the document was not written because of a mistake of the app: it is tried again",
			"", slices.Concat(document, []string{"line", "status", "retry_count", "retry_after"}),
		},
		{
			DocumentFailed, problem, "the document is given up",
			"[Try failed documents again](runbook.md#try-failed-documents-again)",
			slices.Concat(document, []string{"line", "status", "retry_count"}),
		},
		{
			DocumentLeft, problem, "the outcome could not be recorded: left to the recovery timer",
			"read the code; the rows are right, the document does not say so yet", document,
		},
		{
			DocumentUnreadable, problem, "an element of the batch has no id to record an outcome for: it is skipped",
			"find the writer of such items", slices.Concat(failure, []string{"index"}),
		},
		{
			DocumentUnknownStatus, problem, "sql_writer.status is unknown: the document is not changed",
			"correct the status; the document is not touched until then",
			[]string{"document", "status"},
		},
		{
			DocumentNotFound, problem,
			"no document has this id, which the host may have rewritten: nothing was written",
			"nothing: the recovery timer finds the document", document,
		},
		{
			DocumentTooLarge, problem, "MANUAL REVIEW: the document is too large even for the minimal outcome",
			"shrink the document; compare its rows by hand", slices.Concat(document, []string{"status", "outcome"}),
		},
		{
			DocumentDeleted, warn, "the document was deleted while it was written: its lines keep its content",
			"compare its lines by hand, if it was deleted because it was wrong",
			[]string{"document", "outcome"},
		},
		{
			DocumentHealed, warn,
			"another writer committed the document: its lines had older content and were written again",
			"find the other writer",
			[]string{"document"},
		},
		{
			SecondWriter, problem, "another program finished documents after the ledger was adopted", "",
			[]string{"document", "documents"},
		},
		{
			BatchLeft, problem,
			"this batch fails again and again while its dependencies answer others: its remaining documents are left to the recovery timer", "read the code: it says which dependency it is", slices.Concat(failure, []string{"retry_count"}),
		},

		{
			PoisonKept, problem, "a poison message: its evidence is kept",
			"mend the cause, then [replay](runbook.md#try-failed-documents-again)",
			slices.Concat(document, []string{"line", "evidence", "marked"}),
		},
		{
			PoisonUnmarked, problem, "MANUAL REVIEW: a poison message whose lines could not be marked AI-ERROR", "",
			slices.Concat(document, []string{"line", "duplicates", "evidence"}),
		},
		{
			PoisonWaits, problem, "the document's retries are spent, and it stays retry_scheduled",
			"read the reason; nothing is lost, it is tried again", document,
		},
		{
			PoisonLimit, problem,
			"this hour's limit of poison messages is reached: such documents stay retry_scheduled", "", document,
		},

		{RewriteLeftAlone, info, "a rewrite left lines alone", "", []string{"document", "outcome", "reason"}},
		{
			RewriteFailed, warn,
			"a committed document could not be written again: it stays committed", errorCode, document,
		},
		{
			ShadowDiffers, warn, "shadow: the old writer's rows are not what this app would write",
			"[cutover.md](cutover.md)", slices.Concat(document, []string{"outcome", "differs_in"}),
		},

		{FlowChanged, info, "the flow runs, or ramps up", "", flow},
		{
			FlowStopped, warn, "the flow is stopped or paused: documents wait, and nothing is counted against them",
			"[The flow](runbook.md#the-flow)", flow,
		},
		{
			InstanceCutOff, warn,
			"this instance cannot reach SQL while others write: it leaves its documents to them", "", failure,
		},
		{InstanceBack, info, "this instance reaches SQL again", "", nil},
		{
			ControlUnavailable, warn, "the control document is not available: this instance goes on with its own copy",
			"nothing while it is short: no failure counts until it is available ([The flow](runbook.md#the-flow))",
			failure,
		},
		{ControlBack, info, "the control document is available again", "", nil},
		{
			MassFailure, problem, "many documents began to fail with one code: the others are still processed", "",
			[]string{"code", "documents", "since"},
		},
		{
			FeedMissed, problem, "the feed did not bring documents that were due: the recovery timer took them up", "",
			slices.Concat(document, []string{"documents", "oldest_s"}),
		},

		{
			Attention, warn, "a person must look at this", "[The conditions](#the-conditions)",
			[]string{"since", "reason"},
		},

		{HandOffDone, info, "a manager's hand-off is over", "", handOff},
		{HandOffBroken, warn, "a manager's hand-off was interrupted: a later message continues it", errorCode, handOff},
		{RunEnded, info, "a run has ended", "", []string{"status"}},
		{RunEndUnchecked, warn, "the end of the run could not be checked: the timer will", "", failure},
		{RunFailed, warn, "the failure of the run could not be recorded: it is tried again", "", failure},
		{
			ExecutionWaits, warn, "a run in this process waits for a dependency", "[Runs](runbook.md#runs)",
			slices.Concat(failure, []string{"again_ms"}),
		},
		{
			BatchFailed, warn, "a batch of a run failed",
			"[Runs](runbook.md#runs): `batch list RUN/NUMBER` has its errors", failure,
		},
		{
			CompareImpossible, problem,
			"a comparison met states that exclude each other: a mistake of this program; the comparison goes on", "",
			slices.Concat(document, []string{"line"}),
		},
		{ComparisonBegan, info, "the night's comparison began", "", []string{"comparison"}},
		{
			ComparisonEnded, info,
			"a comparison ended: its counts say what it found, `edited_new` how many lines people edited since the one before", "`sqlwriterctl finding list`",
			[]string{"comparison", "counts"},
		},
		{
			ComparisonFailed, problem, "a comparison ended by a mistake of the app", "",
			[]string{"comparison", "counts", "reason"},
		},
		{
			MessageDeadLettered, problem, "a message is a dead letter: its evidence is kept", "",
			[]string{"reason", "evidence", "changed"},
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
