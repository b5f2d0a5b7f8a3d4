package crashtest

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"time"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// ports are what an instance works with.
type ports struct {
	docs     commit.Documents
	sink     commit.Sink
	control  breaker.ControlStore
	evidence commit.Evidence
	finder   commit.Finder
}

// instance is one process of the app. When it is dead no call of it does anything any more: its goroutines end at the
// next.
type instance struct {
	w       *world
	name    string
	dead    bool
	skew    time.Duration // of its clock
	breaker *breaker.Breaker
	commit  *commit.Commit
	recover *commit.Recover
	runs    useCases
	// heartbeats are those of the invocation under way; expire ends it at its deadline, when it has one.
	heartbeats []*heartbeat
	beating    bool
	deadline   time.Time
	expire     func()
}

func (i *instance) now() time.Time { return i.w.now().Add(i.skew) }

// step is one call of a port as it was made.
type step struct {
	n      int
	by     string
	port   string // port.method
	k      int    // the k-th call of this method
	about  string
	kind   kind
	answer string
}

func (s step) String() string {
	text := fmt.Sprintf("%3d %-8s %s#%d %s", s.n, s.by, s.port, s.k, s.about)
	if s.answer != "" {
		text += " -> " + s.answer
	}
	if s.kind != "" {
		text += "   <== " + string(s.kind)
	}
	return text
}

// call is one step: it is numbered, and meets what the plan has for it.
func call[T any](ctx context.Context, i *instance, port, about string, do func() (T, error)) (T, error) {
	var none T
	w := i.w
	if i.dead {
		runtime.Goexit()
	}
	if !w.numbering {
		return do()
	}
	yield(ctx)
	if i.dead { // another goroutine of it met the crash meanwhile
		runtime.Goexit()
	}
	n, k := w.number(i, port, about)
	if k == crashBefore {
		i.dead = true
		runtime.Goexit()
	}
	answer, err := none, error(nil)
	if k.done() {
		answer, err = do()
	}
	w.advance(k.takes())
	i.timeIsOver()
	if k == crashAfter {
		i.dead = true
		runtime.Goexit()
	}
	if injected := k.err("crashtest: " + port); injected != nil {
		if w.misjudged && strings.HasPrefix(port, "sink.") {
			injected = fault.Wrap(fault.Document, "crashtest: "+port, "eof", "taken for the document's", injected)
		}
		answer, err = none, injected
	}
	w.answered(n, err)
	return answer, err
}

// call2 is a step that answers two values.
func call2[A, B any](
	ctx context.Context, i *instance, port, about string, do func() (A, B, error),
) (A, B, error) {
	type both struct {
		a A
		b B
	}
	v, err := call(ctx, i, port, about, func() (v both, err error) { v.a, v.b, err = do(); return v, err })
	return v.a, v.b, err
}

// nothing is the answer of a method that has none but its error.
type nothing struct{}

func only(do func() error) func() (nothing, error) {
	return func() (nothing, error) { return nothing{}, do() }
}

type documents struct{ i *instance }

func (p documents) Read(ctx context.Context, id string) (json.RawMessage, error) {
	return call(ctx, p.i, "documents.Read", id, func() (json.RawMessage, error) {
		return p.i.w.real.docs.Read(ctx, id)
	})
}

func (p documents) ReadMany(ctx context.Context, ids []string) ([]json.RawMessage, error) {
	return call(ctx, p.i, "documents.ReadMany", strings.Join(ids, " "), func() ([]json.RawMessage, error) {
		return p.i.w.real.docs.ReadMany(ctx, ids)
	})
}

func (p documents) Record(ctx context.Context, doc invoice.Snapshot, s invoice.State) (string, error) {
	return call(ctx, p.i, "documents.Record", doc.ID+" "+string(s.Status), func() (string, error) {
		return p.i.w.record(ctx, p.i, doc, s)
	})
}

type sink struct{ i *instance }

func (p sink) Apply(
	ctx context.Context, items []commit.Item, mode commit.Mode, known breaker.Heartbeat,
) ([]commit.DocumentOutcome, error) {
	about := make([]string, len(items))
	for n, it := range items {
		about[n] = it.DocumentID
		if it.FailureMark {
			about[n] = "mark " + it.DocumentID
		}
	}
	p.i.w.asks(p.i, len(items))
	return call(ctx, p.i, "sink.Apply", strings.Join(about, " "), func() ([]commit.DocumentOutcome, error) {
		return p.i.w.apply(ctx, items, mode, known)
	})
}

func (p sink) Heartbeat(ctx context.Context, known breaker.Heartbeat) (breaker.Heartbeat, error) {
	p.i.w.asks(p.i, 0)
	return call(ctx, p.i, "sink.Heartbeat", "", func() (breaker.Heartbeat, error) {
		return p.i.w.real.sink.Heartbeat(ctx, known)
	})
}

func (p sink) TakeOver(ctx context.Context, known breaker.Heartbeat) (breaker.Heartbeat, error) {
	p.i.w.asks(p.i, 0)
	return call(ctx, p.i, "sink.TakeOver", "", func() (breaker.Heartbeat, error) {
		return p.i.w.real.sink.TakeOver(ctx, known)
	})
}

type control struct{ i *instance }

func (p control) Load(ctx context.Context) (breaker.Control, string, error) {
	return call2(ctx, p.i, "control.Load", "", func() (breaker.Control, string, error) {
		return p.i.w.real.control.Load(ctx)
	})
}

func (p control) Store(ctx context.Context, c breaker.Control, etag string) (string, error) {
	return call(ctx, p.i, "control.Store", string(c.Breaker.Name), func() (string, error) {
		was, _, _ := p.i.w.control.Load(ctx)
		answer, err := p.i.w.real.control.Store(ctx, c, etag)
		if err == nil {
			p.i.w.stored(p.i, was.Breaker, c.Breaker)
		}
		return answer, err
	})
}

// Nothing is decided by a status, so a crash at one is none.
func (p control) LoadStatuses(ctx context.Context, since time.Time) ([]breaker.Status, error) {
	return p.i.w.real.control.LoadStatuses(ctx, since)
}

func (p control) StoreStatus(ctx context.Context, s breaker.Status) error {
	return p.i.w.real.control.StoreStatus(ctx, s)
}

type evidence struct{ i *instance }

func (p evidence) Keep(ctx context.Context, name string, content []byte) error {
	_, err := call(ctx, p.i, "evidence.Keep", name,
		only(func() error { return p.i.w.real.evidence.Keep(ctx, name, content) }))
	return err
}

type finder struct{ i *instance }

func (p finder) Find(ctx context.Context, q commit.Query, continuation string) (commit.Page, error) {
	return call(ctx, p.i, "backlog.Page", string(q.Window), func() (commit.Page, error) {
		return p.i.w.real.finder.Find(ctx, q, continuation)
	})
}

// wait is a use of the clock, and a place to lose the turn.
func (i *instance) wait(ctx context.Context, d time.Duration) error {
	if i.w.numbering {
		yield(ctx)
	}
	if i.dead {
		runtime.Goexit()
	}
	i.w.advance(d)
	i.timeIsOver()
	i.beat()
	return ctx.Err()
}
