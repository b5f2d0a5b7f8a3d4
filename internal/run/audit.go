package run

import (
	"encoding/json"

	"sqlwriter/internal/fault"
)

// The codes of the audit log (docs/requirements.md R82).
const (
	CodeRunStart       = "RUN_START"
	CodeRunHandedOff   = "RUN_HANDED_OFF"
	CodeRunDone        = "RUN_DONE"
	CodeRunCancelled   = "RUN_CANCELLED"
	CodeRunCancel      = "RUN_CANCEL"
	CodeRunFail        = "RUN_FAIL"
	CodeRunResume      = "RUN_RESUME"
	CodeBatchCreated   = "BATCH_CREATED"
	CodeBatchStart     = "BATCH_START"
	CodeBatchDone      = "BATCH_DONE"
	CodeBatchFail      = "BATCH_FAIL"
	CodeBatchReleased  = "BATCH_RELEASED"
	CodeBatchRequeue   = "BATCH_REQUEUE"
	CodeBatchRecovered = "BATCH_RECOVERED"
	CodeDeadLetter     = "DEAD_LETTER"
	CodeCompare        = "COMPARE_START"
)

// Codes maps each code of the audit log to its meaning, for documents and operators.
func Codes() map[string]string {
	return map[string]string{
		CodeRunStart: "an operator started the run", CodeRunHandedOff: "all batches of the run were handed off", CodeRunDone: "all batches of the run ended",
		CodeRunCancel: "an operator asked the run to end", CodeRunCancelled: "the run ended because an operator cancelled it", CodeRunFail: "the hand-off failed",
		CodeRunResume: "an operator resumed the run", CodeBatchCreated: "the rows of a batch were written", CodeBatchStart: "a worker claimed the batch",
		CodeBatchDone: "every document of the batch has an outcome", CodeBatchFail: "the batch failed", CodeBatchReleased: "a worker released the batch for a later one",
		CodeBatchRequeue: "an operator requeued the batch", CodeBatchRecovered: "the timer found batches without a live worker or message",
		CodeDeadLetter: "a message was dead-lettered and stored as evidence",
		CodeCompare:    "a comparison began: a night's, or one that an operator asked for",
	}
}

// detail encodes Audit.Detail.
func detail(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil // cannot happen: details are counts and texts
	}
	return raw
}

// errorText describes an error without the driver's text, which may hold content of documents.
func errorText(err error) string {
	e := fault.As(err)
	if e == nil {
		return "an unclassified error"
	}
	return string(e.Kind) + " " + e.Code + ": " + e.Reason
}
