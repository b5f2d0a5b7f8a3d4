package run

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"sqlwriter/internal/fault"
)

// Audit is an entry of the audit log. Only reading fills ID and At, the database's clock.
type Audit struct {
	// ID grows with every entry of the database.
	ID int64     `json:"id"`
	At time.Time `json:"at"`
	// Level is that of an entry about a run; an operator's other entries have none.
	Level string `json:"level,omitempty"`
	// Action is a code (CodeRunStart, ...), or an operator's action that concerns no run.
	Action string `json:"action"`
	// By is the operator, the worker or the function. Why is one sentence.
	By  string `json:"by"`
	Why string `json:"why"`
	// Subject is the id of the document, batch or run. When it is empty, Batch or Run is stored.
	Subject string `json:"subject,omitempty"`
	// Run and Batch are the ids that it concerns; both may be empty.
	Run   string `json:"run,omitempty"`
	Batch string `json:"batch,omitempty"`
	// Detail is JSON: counts, durations, codes; never content of documents.
	Detail json.RawMessage `json:"detail,omitempty"`
}

// The levels.
const (
	LevelInfo  = "INFO"
	LevelWarn  = "WARN"
	LevelError = "ERROR"
)

// Normalize returns the entry as it is stored, with truncated texts. Errors by kind: internal, code "bug" when Detail
// is neither empty nor JSON.
func (a Audit) Normalize() (Audit, error) {
	detail, err := normalizeJSON("run: audit", a.Detail)
	if err != nil {
		return Audit{}, err
	}
	return Audit{
		Level: a.Level, Action: Truncate(a.Action, MaxKind), By: Truncate(a.By, MaxBy), Why: Truncate(a.Why, MaxWhy),
		Subject: Truncate(cmp.Or(a.Subject, a.Batch, a.Run), MaxSubject),
		Run:     Truncate(a.Run, MaxRunID), Batch: a.Batch, Detail: detail,
	}, nil
}

// Notable reports whether an entry is for people: an operator's action, a warning or an error. The rest are routine
// steps of managers, workers and timers, three or more for each batch.
func (a Audit) Notable() bool {
	return a.Level == "" || a.Level == LevelWarn || a.Level == LevelError || slices.Contains(PeopleCodes(), a.Action)
}

// PeopleCodes are the codes that operators cause, and the beginnings of the timer.
func PeopleCodes() []string {
	return []string{CodeRunStart, CodeRunCancel, CodeRunResume, CodeBatchRequeue, CodeCompare}
}

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

// CodeMarkCommitted is the action of a person who said that the lines of a document (the subject) were repaired by
// hand. A document's outcome manual counts only with such an entry, so a purge keeps these.
const CodeMarkCommitted = "mark-committed"

// Mark is what such an entry is about: a document with the committed_at that it got. Another outcome manual of the same
// document has another time, and no entry.
type Mark struct{ Document, CommittedAt string }

// Mark returns the mark that an entry is about.
func (a Audit) Mark() Mark {
	var d struct {
		CommittedAt string `json:"committed_at"`
	}
	_ = json.Unmarshal(a.Detail, &d) // an entry without one vouches for nothing
	return Mark{a.Subject, d.CommittedAt}
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
