package ops

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/run"
	"sqlwriter/internal/writer"
)

// journalTimeout bounds one use of the Journal.
const journalTimeout = 30 * time.Second

// Committer takes documents to SQL and records what became of them: *writer.Commit.
type Committer interface {
	Run(ctx context.Context, b writer.Batch) (writer.Report, error)
}

// Gate is what Ops needs of the gate: *writer.Gate, whose contract it is.
type Gate interface {
	View(ctx context.Context) writer.View
	Seen() writer.View
	Guard(ctx context.Context, writes bool, use func(context.Context) error) error
	Pause(ctx context.Context, by, why string) error
	Resume(ctx context.Context, by string) error
}

// Ports are what Ops works on.
type Ports struct {
	Documents writer.Documents
	Backlog   writer.Backlog
	// Gate is the one that Commit goes through.
	Gate Gate
	// Commit and Journal are nil while SQL is not open: questions about documents and a pause need neither.
	Commit  Committer
	Journal Journal
	// Runs, Reports and RunQueue are of the runs that managers and workers do; Selection finds their documents.
	Runs      RunBooks
	Reports   run.Reports
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
		o.Wait = wait
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
func words(by, why string) error {
	switch {
	case strings.TrimSpace(by) == "":
		return refuse(Usage, "by: expected who asks, found nothing")
	case strings.TrimSpace(why) == "":
		return refuse(Usage, "why: expected the reason, found nothing: it stands in the audit log")
	}
	return nil
}

// document checks an id.
func document(id string) error {
	switch {
	case id == "":
		return refuse(Usage, "id: expected the id of a document, found nothing")
	case len(id) > MaxSubject:
		return refuse(Usage, "id: expected at most %d bytes, found %d", MaxSubject, len(id))
	case strings.ContainsAny(id, `/\?#`):
		return refuse(Usage, `id: expected the id of a document, which has none of / \ ? #, found %q`, Clip(id, MaxBy))
	}
	return nil
}

// beyond reports whether what the gate is open for says nothing of whether SQL answers: an operator's pause, and a build or
// schema that every document fails on. The audit log is then written although the gate is open.
func beyond(s writer.GateState) bool { return s.Reachable() }

// write uses the Journal for something that must be written. While the gate is open for SQL's sake it is refused, but for
// the one that gets the probe. A use that wrote nothing answers an error: a *RequestError tells the gate that SQL answers, and no more.
func (o *Ops) write(ctx context.Context, use func(context.Context) error) error {
	return o.guard(ctx, true, use)
}

// guard uses the Journal for an action. Beside a gate that says nothing of whether SQL answers it goes straight through; otherwise
// it may take a probe that is due and that it can answer, as everybody may.
func (o *Ops) guard(ctx context.Context, writes bool, use func(context.Context) error) error {
	if err := o.opened(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, journalTimeout)
	defer cancel()
	if beyond(o.p.Gate.View(ctx).State()) {
		return use(ctx)
	}
	return o.p.Gate.Guard(ctx, writes, use)
}

// read uses the Journal for an answer. It never takes the probe: that something can be read does not say that anything can
// be written.
func (o *Ops) read(ctx context.Context, use func(context.Context) error) error {
	if err := o.opened(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, journalTimeout)
	defer cancel()
	state := o.p.Gate.View(ctx).State()
	switch {
	case beyond(state):
		return use(ctx)
	case state.Open():
		return o.gateOpen(state)
	}
	return o.p.Gate.Guard(ctx, false, use)
}

// opened is an error while SQL is not open.
func (o *Ops) opened() error {
	if o.p.Journal == nil || (o.p.Commit == nil && o.o.ReadOnly == "") {
		return fault.New(fault.Infrastructure, "ops: journal", "starting", "SQL is not open yet; Health says why")
	}
	return nil
}

// gateOpen is the error for what must not ask SQL now.
func (o *Ops) gateOpen(state writer.GateState) error {
	return fault.New(fault.Infrastructure, "ops: journal", "gate_open", "the gate is %s", o.says(state))
}

// unaudited is the error of an action that was not begun because it could not be audited.
func unaudited(err error) error {
	e := fault.As(err)
	if e == nil {
		return fmt.Errorf("nothing was done, because no audit row can be written: %w", err)
	}
	said := *e
	said.Reason = "nothing was done, because no audit row can be written: " + e.Reason
	return &said
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
