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
)

// Codes are all of them with what they mean, for docs and operators.
func Codes() map[string]string {
	return map[string]string{
		CodeRunStart: "a run was asked for", CodeRunHandedOff: "all its batches were handed off", CodeRunDone: "all its batches ended",
		CodeRunCancel: "an operator asked it to end", CodeRunCancelled: "it ended because an operator asked for it", CodeRunFail: "its hand-off was given up",
		CodeRunResume: "an operator had it go on", CodeBatchCreated: "a batch has its rows", CodeBatchStart: "a worker has it",
		CodeBatchDone: "every document of it has an outcome", CodeBatchFail: "it was given up", CodeBatchReleased: "its worker let go of it for a later one",
		CodeBatchRequeue: "an operator wants it again", CodeBatchRecovered: "the timer found batches that were left behind",
		CodeDeadLetter: "a message was put aside, its evidence is kept",
	}
}

// detail is a value as Audit.Detail.
func detail(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil // counts and texts always can
	}
	return raw
}

// errorText is an error in our own words: a driver's text may hold content.
func errorText(err error) string {
	e := fault.As(err)
	if e == nil {
		return "an unclassified error"
	}
	return string(e.Kind) + " " + e.Code + ": " + e.Reason
}
