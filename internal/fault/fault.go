// Package fault names the few kinds of failure that the SQL Writer knows and what each one means for the work in
// hand. Everything that goes wrong is one of six kinds, and each kind has one scope, which alone decides who pays:
//
//   - Dependency: something that every document needs is unwell. No document is blamed, no retry is spent.
//   - Attempt: this try lost a race. It is made again at once; only a document that keeps losing alone is looked at.
//   - Document: this document cannot be written as it is. It spends one of its own retries, if others got through after it.
//
// Adapters translate driver errors into *Error in one function each, from a table (their classify.go). Everybody else
// decides with errors.As or the helpers here, never by text. The kinds follow docs/requirements.md R32.
package fault

import (
	"errors"
	"fmt"
	"runtime"
	"time"
)

// Kind is what went wrong, in the few words that have different consequences.
type Kind string

// The kinds. The zero value is no kind at all: KindOf answers it for a nil error only.
const (
	// Infrastructure: refused, reset, timed out, not allowed, not there: the dependency cannot be worked with.
	Infrastructure Kind = "infrastructure"
	// Throttled: the dependency asks us to slow down.
	Throttled Kind = "throttled"
	// Quota: the dependency is full. Waiting seconds does not help, a person or a purge does.
	Quota Kind = "quota"
	// Contention: a deadlock, a lock timeout, a lost race, a verdict without evidence.
	Contention Kind = "contention"
	// Document: this document's own content is refused.
	Document Kind = "document"
	// Internal: a panic or a state that cannot be. Handled as the document's, logged as ours.
	Internal Kind = "internal"
)

// Scope is who pays for a failure.
type Scope string

// The scopes, from the widest to the narrowest.
const (
	// ScopeDependency: nobody's document pays; the caller answers 5xx and the feed waits.
	ScopeDependency Scope = "dependency"
	// ScopeAttempt: the try is repeated at once, a few times.
	ScopeAttempt Scope = "attempt"
	// ScopeDocument: the document spends one retry, if others were written after its failure.
	ScopeDocument Scope = "document"
)

// Rule is one row of the table of kinds.
type Rule struct {
	// Kind is the row's key.
	Kind Kind
	// Scope says who pays.
	Scope Scope
	// SpendsRetry is true when the document's own retry_count grows, once others were written after the failure.
	SpendsRetry bool
	// When says, for people, when the work is tried again.
	When string
}

// Rules is the table of kinds. The breaker stands in front of SQL, so of the other
// dependencies only the waiting is true: the host offers the batch again, and their adapters' rows say so.
func Rules() []Rule {
	return []Rule{
		{
			Infrastructure, ScopeDependency, false,
			"the host offers the batch again every 10 s; 5 failures in a row that span at least 15 s open the breaker: " +
				"60 s, then one probe, and so on until one is committed",
		},
		{
			Throttled, ScopeDependency, false,
			"the breaker opens for 10 s, doubling to 5 min; a Retry-After wins; then each instance makes one request at a time for 5 min",
		},
		{Quota, ScopeDependency, false, "the breaker opens for 5 min, then one probe every 5 min; an operator's resume probes at once"},
		{
			Contention, ScopeAttempt, false,
			"at once, up to 3 times with jitter; then the request is divided; a document that loses alone is tried again after 120 s",
		},
		{
			Document, ScopeDocument, true,
			"after 2, 4, 8, 16, 32 min, then 1 h (120 s * 2^n, plus 0-20 %), or sooner when others are written again; " +
				"a failure counts when others were written at least 60 s after it; after 6 that count the next one makes it a poison message",
		},
		{Internal, ScopeDocument, true, "as document, with an error line in the log: it is ours to mend"},
	}
}

// ScopeOf answers who pays for a kind. A kind that is not in the table is treated as Internal.
func ScopeOf(k Kind) Scope {
	for _, r := range Rules() {
		if r.Kind == k {
			return r.Scope
		}
	}
	return ScopeDocument
}

// Condition tells apart, within a kind, the few situations that a use case must handle by itself.
type Condition string

// The conditions. Most errors have none.
const (
	// NoCondition: the kind alone decides.
	NoCondition Condition = ""
	// Gone: the document is not there (Cosmos 404).
	Gone Condition = "gone"
	// Changed: the document is not the one that was read (Cosmos 412).
	Changed Condition = "changed"
	// TooLarge: what was sent does not fit (Cosmos 413).
	TooLarge Condition = "too_large"
	// Unreadable: the document cannot be understood as a document at all.
	Unreadable Condition = "unreadable"
	// MissingRow: the user's detail row does not exist.
	MissingRow Condition = "missing_row"
	// OwnWhenAlone: contention that is the document's own error when it happens to a document alone, because nobody
	// else can have caused it (a broken uniqueness, a row count that does not add up).
	OwnWhenAlone Condition = "own_when_alone"
	// OthersAnswered: the request failed like an outage, and a heartbeat was committed right after it. The request itself may be
	// what fails.
	OthersAnswered Condition = "others_answered"
)

// Error is a classified failure.
type Error struct {
	// Kind decides what happens next.
	Kind Kind
	// Condition tells special situations apart; usually NoCondition.
	Condition Condition
	// Code is the dependency's own number or word, or the name of our rule: "2628", "429", "validation.too_long".
	Code string
	// Op is the operation that failed, prefixed by its adapter: "cosmos: patch", "sqlite: apply".
	Op string
	// Reason says for an operator what the code means here. Never a payload.
	Reason string
	// RetryAfter is the wait that the dependency asked for; zero when it asked for none.
	RetryAfter time.Duration
	// Err is the cause, reachable with errors.As and errors.Is.
	Err error
}

// Error gives one line: operation, kind and code, reason, cause.
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

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Scope answers who pays for this failure.
func (e *Error) Scope() Scope { return ScopeOf(e.Kind) }

// New makes an error of a kind without a cause. Code is the dependency's number or our rule's name.
func New(k Kind, op, code, format string, args ...any) *Error {
	return &Error{Kind: k, Op: op, Code: code, Reason: fmt.Sprintf(format, args...)}
}

// Wrap puts a cause under a kind. It must not be given a nil cause: a success wrapped as a failure, or the reverse,
// is how commit errors get lost, so a nil cause becomes an Internal error that says so.
func Wrap(k Kind, op, code, reason string, err error) *Error {
	if err == nil {
		return &Error{Kind: Internal, Op: op, Code: "nil_cause", Reason: "an error was reported without a cause: " + reason}
	}
	return &Error{Kind: k, Op: op, Code: code, Reason: reason, Err: err}
}

// Panic makes an Internal error of what recover answered. A panic's own text may hold content, so only that of the runtime is told.
func Panic(op string, recovered any) *Error {
	what := fmt.Sprintf("%T", recovered)
	if e, ok := recovered.(runtime.Error); ok {
		what = e.Error()
	}
	return New(Internal, op, "panic", "a panic of ours: %s", what)
}

// As finds the classified error in a chain; nil when there is none.
func As(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return nil
}

// KindOf answers the kind of an error: "" for nil, Internal for an error that nobody classified.
func KindOf(err error) Kind {
	if err == nil {
		return ""
	}
	if e := As(err); e != nil {
		return e.Kind
	}
	return Internal
}

// CodeOf answers the code of an error: "" for nil, "unclassified" for an error that nobody classified.
func CodeOf(err error) string {
	if err == nil {
		return ""
	}
	if e := As(err); e != nil {
		return e.Code
	}
	return "unclassified"
}

// IsDependency reports whether an error blames no document. A nil error does not.
func IsDependency(err error) bool {
	return err != nil && ScopeOf(KindOf(err)) == ScopeDependency
}

// Has reports whether an error carries a condition.
func Has(err error, c Condition) bool {
	e := As(err)
	return e != nil && e.Condition == c
}
