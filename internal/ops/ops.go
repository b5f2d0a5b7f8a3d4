package ops

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/events"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/run"
)

// storeTimeout bounds one use of the stores.
const storeTimeout = 30 * time.Second

// Breaker is the part of *breaker.Breaker that Ops uses.
type Breaker interface {
	View(ctx context.Context) breaker.View
	Seen() breaker.View
	Permit(ctx context.Context) error
	MayPoison(ctx context.Context) bool
	Pause(ctx context.Context, by, why string) error
	Resume(ctx context.Context, by, why string) error
	Force(ctx context.Context, by, why string) (taken bool, err error)
	Unaudited(ctx context.Context) []breaker.Transition
	Audited(ctx context.Context, written []breaker.Transition)
}

// Executor executes runs without messages: *run.Executor.
type Executor interface {
	Execute(ctx context.Context, id string) (run.Executed, error)
}

// Stores give access to the tables of runs and to the audit log.
type Stores struct {
	Audit   AuditLog
	Runs    RunStore
	Reports run.Reports
	Ledger  Ledger
	// Findings are what comparisons found. Rows reads lines as they do.
	Findings FindingStore
	Rows     reconcile.Rows
	// Executor executes runs in this process.
	Executor Executor
	// Check checks anew that the database is migrated, and its ledger adopted. Errors by kind: infrastructure,
	// throttled, quota.
	Check func(ctx context.Context) error
	// Preview is commit.Sink.Apply in mode preview. Mapping is that of its statements. Mappings are those that
	// migrations chose, the last one first; nil is as if none did.
	Preview  func(ctx context.Context, items []commit.Item) ([]commit.DocumentOutcome, error)
	Mapping  *invoice.Mapping
	Mappings func(ctx context.Context) ([]invoice.Recorded, error)
}

// Ports are the dependencies of Ops.
type Ports struct {
	Documents commit.Documents
	Finder    commit.Finder
	// Breaker is the one that the runs' commits use.
	Breaker Breaker
	// Stores opens the database if necessary. Errors by kind: infrastructure, throttled, quota.
	Stores      func(ctx context.Context) (Stores, error)
	ReportNames []run.ReportName
	// RunQueue takes the first message of a run.
	RunQueue run.Queue
	// Counts keeps what SaveCounts counts. Queues are those that it looks into.
	Counts CountsStore
	Queues []NamedQueue
	// Evidence is that of poison messages. Creator puts deleted documents back.
	Evidence EvidenceStore
	Creator  DocumentCreator
	// Doctor is what the app looks at, the rows between SQL and the timer.
	Doctor []Look
	// Canaries are those of DoctorRequest.Send, and CanaryFailed is the row of their errors.
	Canaries     Canaries
	CanaryFailed func(err error) DoctorRow
}

// Options configure Ops. Zero values mean the defaults.
type Options struct {
	// SysName is the environment. Documents and runs of others are refused.
	SysName string
	// Reader reads the documents.
	Reader invoice.Reader
	// Location is the time zone of answers; default UTC.
	Location   *time.Location
	AppVersion string
	// Mapping is Status.Mapping.
	Mapping string
	// PartitionKey gives Status.PartitionKey.
	PartitionKey func() string
	// ReadOnly says why no document may be changed (a shadow); empty when changes are allowed.
	ReadOnly string
	// Kinds are the kinds of runs; default run.Kinds().
	Kinds run.KindTable
	// Faults are the codes that a request may name; default those of the use cases.
	Faults []fault.Row
	// Now is the clock.
	Now func() time.Time
	// Log is the log of the work that a context belongs to; default none.
	Log func(ctx context.Context) events.Log
}

// Ops implements the operators' use cases. It returns *RequestError when a request is refused, otherwise classified
// errors (internal/fault), of dependency scope while a dependency does not answer. It is safe for concurrent use.
type Ops struct {
	p     Ports
	o     Options
	began time.Time
}

// New makes an Ops.
func New(p Ports, o Options) *Ops {
	if o.Location == nil {
		o.Location = time.UTC
	}
	if o.Kinds == nil {
		o.Kinds = run.Kinds()
	}
	if o.Faults == nil {
		o.Faults = slices.Concat(commit.Faults(), run.Faults(), invoice.Faults())
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = func(context.Context) events.Log { return events.Log{} }
	}
	if o.PartitionKey == nil {
		o.PartitionKey = func() string { return "" }
	}
	return &Ops{p: p, o: o, began: o.Now()}
}

// Refusal is the reason class of a refused request.
type Refusal string

// The refusals.
const (
	// Usage: a field is missing or has a value that is not allowed.
	Usage Refusal = "usage"
	// NotFound: the named document, run or batch does not exist.
	NotFound Refusal = "not_found"
	// Conflict: its state does not allow the request.
	Conflict Refusal = "conflict"
)

// RequestError is a refused request. Nothing was changed.
type RequestError struct {
	Refusal Refusal
	// Message is for the operator. It may repeat the request.
	Message string
}

func (e *RequestError) Error() string { return e.Message }

func refuse(r Refusal, format string, args ...any) error {
	return &RequestError{Refusal: r, Message: fmt.Sprintf(format, args...)}
}

// checkReason checks the reason that every action needs, and returns who asks.
func checkReason(ctx context.Context, why string) (by string, err error) {
	if strings.TrimSpace(why) == "" {
		return "", refuse(Usage, "why: expected the reason, found nothing: it stands in the audit log")
	}
	return actor(ctx)
}

// mayAct returns who asks for a change. It refuses one without a reason, and any in a shadow.
func (o *Ops) mayAct(ctx context.Context, why string) (by string, err error) {
	if by, err = checkReason(ctx, why); err == nil && o.o.ReadOnly != "" {
		err = refuse(Conflict, "%s", o.o.ReadOnly)
	}
	return by, err
}

func checkDocumentID(id string) error {
	switch {
	case id == "":
		return refuse(Usage, "id: expected the id of a document, found nothing")
	case len(id) > run.MaxSubject:
		return refuse(Usage, "id: expected at most %d bytes, found %d", run.MaxSubject, len(id))
	case strings.ContainsAny(id, `/\?#`):
		return refuse(Usage, `id: expected the id of a document, which has none of / \ ? #, found %q`,
			run.Truncate(id, run.MaxBy))
	}
	return nil
}

// stores uses the database if the breaker permits it. It also goes ahead during a pause, which says nothing about SQL.
// The operator who paused may want to read and to act first.
func (o *Ops) stores(ctx context.Context, use func(context.Context, Stores) error) error {
	if o.p.Breaker.View(ctx).Control.Breaker.Name != breaker.Paused {
		if err := o.p.Breaker.Permit(ctx); err != nil {
			return err
		}
	}
	return o.withStores(ctx, use)
}

// withStores uses the database whatever the breaker says, also to finish work that was started.
func (o *Ops) withStores(ctx context.Context, use func(context.Context, Stores) error) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	s, err := o.p.Stores(ctx)
	if err != nil {
		return err
	}
	return use(ctx, s)
}

// asJSON writes what is stored with an action.
func asJSON(op string, v any) (json.RawMessage, error) {
	text, err := json.Marshal(v)
	if err != nil {
		err = fault.Wrap(fault.Internal, op, fault.CodeBug, "it cannot be written as JSON", err)
	}
	return text, err
}

// unaudited is the error of an action that was not started because its audit entry could not be written.
func unaudited(err error) error {
	return because(err, "nothing was done, because no audit row can be written")
}

// because puts what an error means for the action in front of its reason.
func because(err error, means string) error {
	e := fault.As(err)
	if e == nil {
		return fmt.Errorf("%s: %w", means, err)
	}
	wrapped := *e
	wrapped.Reason = means + ": " + e.Reason
	return &wrapped
}

// errorText describes an error without its cause, which may hold an address.
func errorText(err error) string {
	e := fault.As(err)
	if e == nil {
		return fmt.Sprintf("%T", err)
	}
	return fmt.Sprintf("%s: %s %s: %s", e.Op, e.Kind, e.Code, e.Reason)
}
