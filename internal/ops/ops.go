package ops

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/run"
	"sqlwriter/internal/timer"
)

// storeTimeout bounds one use of the books.
const storeTimeout = 30 * time.Second

// Committer takes documents to SQL and records what became of them: *commit.Commit.
type Committer interface {
	Run(ctx context.Context, b commit.Batch) (commit.Report, error)
}

// Breaker is what Ops needs of the breaker in front of SQL: *breaker.Breaker, whose contract it is.
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

// Stores are the tables of runs and of the audit log.
type Stores struct {
	Audit AuditLog
	// Runs and Reports are of the runs that managers and workers do.
	Runs    RunStore
	Reports run.Reports
}

// Ports are what Ops works on.
type Ports struct {
	Documents commit.Documents
	Backlog   commit.Backlog
	// Breaker is the one that Commit goes through.
	Breaker Breaker
	// Commit is nil in a shadow.
	Commit Committer
	// Stores gives the books, and opens the database if it is not open. Errors by kind: infrastructure, throttled, quota.
	Stores func(ctx context.Context) (Stores, error)
	// ReportNames are the reports that there are.
	ReportNames []run.ReportName
	// RunQueue takes the first message of a run; Selection finds its documents.
	RunQueue  run.Queue
	Selection run.Selection
}

// Options configure Ops. Zero values mean the defaults that are named.
type Options struct {
	// SysName is the environment whose documents are ours.
	SysName string
	// Location is the zone of the times in answers; UTC by default.
	Location *time.Location
	// AppVersion is this build's.
	AppVersion string
	// ReadOnly says why no document may be changed (a shadow); empty when they may.
	ReadOnly string
	// Now is the clock, Wait sleeps unless the context ends first.
	Now  func() time.Time
	Wait func(ctx context.Context, d time.Duration) error
}

// Ops is what operators ask and do. Its errors are *RequestError when what was asked for cannot be done as asked, otherwise
// classified ones (internal/fault): of dependency scope while something that is needed does not answer. It is safe for
// concurrent use.
type Ops struct {
	p Ports
	o Options
}

// New makes an Ops.
func New(p Ports, o Options) *Ops {
	if o.Location == nil {
		o.Location = time.UTC
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Wait == nil {
		o.Wait = timer.Wait
	}
	return &Ops{p: p, o: o}
}

// Refusal is why a request cannot be done as it was asked.
type Refusal string

// The refusals.
const (
	// Usage: something is missing in the request, or is none of what is allowed.
	Usage Refusal = "usage"
	// NotFound: what the request names is not there.
	NotFound Refusal = "not_found"
	// Conflict: it is there, and not in a state that allows it.
	Conflict Refusal = "conflict"
)

// RequestError says why a request was refused. Nothing was changed.
type RequestError struct {
	Refusal Refusal
	// Message says it to the operator. It may repeat what was asked.
	Message string
}

func (e *RequestError) Error() string { return e.Message }

func refuse(r Refusal, format string, args ...any) error {
	return &RequestError{Refusal: r, Message: fmt.Sprintf(format, args...)}
}

// words checks the operator's own: who asks, and why.
func checkReason(by, why string) error {
	switch {
	case strings.TrimSpace(by) == "":
		return refuse(Usage, "by: expected who asks, found nothing")
	case strings.TrimSpace(why) == "":
		return refuse(Usage, "why: expected the reason, found nothing: it stands in the audit log")
	}
	return nil
}

// document checks an id.
func checkDocumentID(id string) error {
	switch {
	case id == "":
		return refuse(Usage, "id: expected the id of a document, found nothing")
	case len(id) > MaxSubject:
		return refuse(Usage, "id: expected at most %d bytes, found %d", MaxSubject, len(id))
	case strings.ContainsAny(id, `/\?#`):
		return refuse(Usage, `id: expected the id of a document, which has none of / \ ? #, found %q`, Truncate(id, MaxBy))
	}
	return nil
}

// stores uses the database for what a person asks, when the breaker permits it. Beside a pause it goes ahead: a pause stops the
// work and says nothing of SQL, and who paused wants to look, and to act before the work goes on.
func (o *Ops) stores(ctx context.Context, use func(context.Context, Stores) error) error {
	if o.p.Breaker.View(ctx).Control.Breaker.Name != breaker.Paused {
		if err := o.p.Breaker.Permit(ctx); err != nil {
			return err
		}
	}
	return o.withStores(ctx, use)
}

// end uses the database to end something that was begun: it is tried whatever the breaker says.
func (o *Ops) withStores(ctx context.Context, use func(context.Context, Stores) error) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	s, err := o.p.Stores(ctx)
	if err != nil {
		return err
	}
	return use(ctx, s)
}

// unaudited is the error of an action that was not begun because it could not be audited.
func unaudited(err error) error {
	e := fault.As(err)
	if e == nil {
		return fmt.Errorf("nothing was done, because no audit row can be written: %w", err)
	}
	wrapped := *e
	wrapped.Reason = "nothing was done, because no audit row can be written: " + e.Reason
	return &wrapped
}

// errorText is an error in our own words: a cause may hold an address.
func errorText(err error) string {
	e := fault.As(err)
	if e == nil {
		return fmt.Sprintf("%T", err)
	}
	return fmt.Sprintf("%s: %s %s: %s", e.Op, e.Kind, e.Code, e.Reason)
}
