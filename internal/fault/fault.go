// Package fault classifies failures. Every failure has one of six kinds. The kind's scope decides which work pays for
// the failure, unless a condition overrides it.
//
//   - Dependency: a service that every document needs fails. No document is blamed, and no retry is spent.
//   - Attempt: this try lost a race and is repeated at once. A document that keeps losing alone is put off.
//   - Document: this document cannot be written as it is. It spends one of its retries.
//
// ConditionRules lists the conditions that override the kind. With OwnWhenAlone (contention) and OthersAnswered
// (infrastructure) a document that fails alone pays, although its kind blames no document. Where a code differs from
// both, its classifier's row says so (Row.Own).
//
// Each adapter maps driver errors to *Error in one function, from a table (classify.go). All other code decides with
// errors.As or the helpers here, never by text. The kinds follow docs/requirements.md R32.
package fault

import (
	"errors"
	"fmt"
	"runtime"
	"time"
)

// Kind is the class of a failure.
type Kind string

// The kinds. The zero value is not a kind: KindOf returns it for a nil error only.
const (
	// Infrastructure: refused, reset, timed out, not allowed or missing. The dependency cannot be used.
	Infrastructure Kind = "infrastructure"
	// Throttled: the dependency asks for fewer requests.
	Throttled Kind = "throttled"
	// Quota: the dependency is full. Only a person or a purge helps.
	Quota Kind = "quota"
	// Contention: a deadlock, a lock timeout, a lost race, a verdict without evidence.
	Contention Kind = "contention"
	// Document: this document's own content is refused.
	Document Kind = "document"
	// Internal: a panic or an impossible state. It is handled like Document and logged as an error of ours.
	Internal Kind = "internal"
)

// Scope is what a kind of failure affects.
type Scope string

// The scopes, from the widest to the narrowest.
const (
	// ScopeDependency: no document pays; the caller answers 5xx, and the feed waits.
	ScopeDependency Scope = "dependency"
	// ScopeAttempt: the try is repeated at once, a few times.
	ScopeAttempt Scope = "attempt"
	// ScopeDocument: the document spends one retry.
	ScopeDocument Scope = "document"
)

// Rule is one row of the table of kinds.
type Rule struct {
	Kind  Kind
	Scope Scope
	// SpendsRetry is true when the document's retry_count grows.
	SpendsRetry bool
	// When tells operators when the work is tried again.
	When string
}

// Rules is the table of kinds. Its times are those of the breaker in front of SQL. For other dependencies the host
// offers the batch again; their adapters' rows have the details.
func Rules() []Rule {
	return []Rule{
		{
			Kind: Infrastructure, Scope: ScopeDependency,
			When: "the host offers the batch again every 10 s; 5 failures in a row that span at least 15 s open the breaker: " +
				"60 s, then one probe, and so on until one is committed",
		},
		{
			Kind: Throttled, Scope: ScopeDependency,
			When: "the breaker opens for 10 s, doubling to 5 min; a Retry-After wins; then each instance makes one request at a time for 5 min",
		},
		{
			Kind: Quota, Scope: ScopeDependency,
			When: "the breaker opens for 5 min, then one probe every 5 min; an operator's resume probes at once",
		},
		{
			Kind: Contention, Scope: ScopeAttempt,
			When: "at once, 3 tries in all, with jitter; then the request is divided; a document that loses alone is tried again after 120 s",
		},
		{
			Kind: Document, Scope: ScopeDocument, SpendsRetry: true,
			When: "after 2, 4, 8, 16, 32 min (120 s * 2^n, plus 0-20 %); the sixth failure spends the 5 retries: then after 1 h, or sooner when others " +
				"are written; a poison message at the next one, when others were written at least 60 s after the one before; without that a day after the first",
		},
		{
			Kind: Internal, Scope: ScopeDocument, SpendsRetry: true,
			When: "as document, with an error line in the log: an error of the product",
		},
	}
}

// ScopeOf returns the scope of a kind. An unknown kind counts as Internal.
func ScopeOf(k Kind) Scope {
	for _, r := range Rules() {
		if r.Kind == k {
			return r.Scope
		}
	}
	return ScopeDocument
}

// Condition marks the situations within a kind that a use case handles differently.
type Condition string

// Most errors have no condition. ConditionRules has the consequences that differ from the kind's.
const (
	// NoCondition: the consequence is the kind's.
	NoCondition Condition = ""
	// Gone: the document does not exist (Cosmos 404).
	Gone Condition = "gone"
	// Changed: the document has changed since it was read (Cosmos 412).
	Changed Condition = "changed"
	// TooLarge: the request is too large (Cosmos 413).
	TooLarge Condition = "too_large"
	// Unreadable: the document's structure cannot be understood.
	Unreadable Condition = "unreadable"
	// MissingRow: the user's detail row does not exist.
	MissingRow Condition = "missing_row"
	// OwnWhenAlone: contention that is the document's own error if it fails alone. No other document can be the cause
	// (a broken uniqueness, a wrong row count).
	OwnWhenAlone Condition = "own_when_alone"
	// OthersAnswered: the request failed like an outage, but a heartbeat was committed right after it. The request
	// itself may be the cause.
	OthersAnswered Condition = "others_answered"
	// Waits: nothing failed and nothing was done. The work must wait: the breaker is open, or it is another writer's
	// turn (ONE_WRITER).
	Waits Condition = "waits"
)

// CodeBug is the code of all Internal errors by which the program breaks one of its own contracts. Their words name it.
const CodeBug = "bug"

// Error is a classified failure.
type Error struct {
	// Kind decides what happens next, unless Condition overrides it.
	Kind      Kind
	Condition Condition
	// Code is the dependency's number or word, or the name of our rule: "2628", "429", "validation.too_long".
	Code string
	// Op is the failed operation with its adapter: "cosmos: patch", "sqlite: apply".
	Op string
	// Reason tells operators what the code means here. It never has a payload.
	Reason string
	// RetryAfter is the wait that the dependency asked for; zero if it did not.
	RetryAfter time.Duration
	// Err is the cause, for errors.As and errors.Is.
	Err error
}

// Error returns one line: operation, kind and code, reason, cause.
func (e *Error) Error() string {
	s := string(e.Kind)
	if e.Code != "" {
		s += " " + e.Code
	}
	if e.Op != "" {
		s = e.Op + ": " + s
	}
	if e.Reason != "" {
		s += ": " + e.Reason
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Scope returns the scope of the error's kind.
func (e *Error) Scope() Scope { return ScopeOf(e.Kind) }

// New makes an error without a cause.
func New(k Kind, op, code, format string, args ...any) *Error {
	return &Error{Kind: k, Op: op, Code: code, Reason: fmt.Sprintf(format, args...)}
}

// Wrap makes an error with a cause. A nil cause becomes an Internal error that says so, because a success wrapped as a
// failure is a bug that loses errors.
func Wrap(k Kind, op, code, reason string, err error) *Error {
	if err == nil {
		return &Error{Kind: Internal, Op: op, Code: CodeBug, Reason: "an error was reported without a cause: " + reason}
	}
	return &Error{Kind: k, Op: op, Code: code, Reason: reason, Err: err}
}

// Panic makes an Internal error of what recover answered. A panic's own text may hold content, so only that of the
// runtime is told.
func Panic(op string, recovered any) *Error {
	what := fmt.Sprintf("%T", recovered)
	if e, ok := recovered.(runtime.Error); ok {
		what = e.Error()
	}
	return New(Internal, op, "panic", "a panic of ours: %s", what)
}

// As finds the classified error in a chain; nil if the chain has no such error.
func As(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return nil
}

// KindOf returns the kind of an error: "" for nil, Internal for an unclassified error.
func KindOf(err error) Kind {
	if err == nil {
		return ""
	}
	if e := As(err); e != nil {
		return e.Kind
	}
	return Internal
}

// CodeOf returns the code of an error: "" for nil, "unclassified" for an unclassified error.
func CodeOf(err error) string {
	if err == nil {
		return ""
	}
	if e := As(err); e != nil {
		return e.Code
	}
	return "unclassified"
}

// IsDependency reports whether an error's kind has the scope Dependency. It is false for nil.
func IsDependency(err error) bool {
	return err != nil && ScopeOf(KindOf(err)) == ScopeDependency
}

// Has reports whether an error has a condition.
func Has(err error, c Condition) bool {
	e := As(err)
	return e != nil && e.Condition == c
}
