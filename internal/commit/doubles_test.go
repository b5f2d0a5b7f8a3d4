package commit_test

import (
	"context"
	"path"
	"slices"
	"time"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
)

// sinkHook runs a hook before each request.
type sinkHook struct {
	commit.Sink
	before func(items []commit.Item) error
}

func (s sinkHook) Apply(
	ctx context.Context, items []commit.Item, mode commit.Mode, known breaker.Heartbeat,
) ([]commit.DocumentOutcome, error) {
	if err := s.before(items); err != nil {
		return nil, err
	}
	return s.Sink.Apply(ctx, items, mode, known)
}

// locked is a database in which another session locks the first k lines: a request with one of them waits five seconds.
func (w *world) locked(k int64) commit.Sink {
	return sinkHook{w.sink, func(items []commit.Item) error {
		if slices.ContainsFunc(items, func(it commit.Item) bool { return it.Main <= k }) {
			w.clock = w.clock.Add(5 * time.Second)
			return lost()
		}
		return nil
	}}
}

// markRefuser refuses marks, as a sink does whose status column is too narrow.
type markRefuser struct{ commit.Sink }

func (s markRefuser) Apply(
	ctx context.Context, items []commit.Item, mode commit.Mode, known breaker.Heartbeat,
) ([]commit.DocumentOutcome, error) {
	if len(items) == 1 && items[0].FailureMark {
		err := fault.New(fault.Document, "test", "validation.too_long", "refused")
		return []commit.DocumentOutcome{{DocumentID: items[0].DocumentID, Refused: err}}, nil
	}
	return s.Sink.Apply(ctx, items, mode, known)
}

// refuse refuses every write of content, while on, except to the line of another document.
func refuse(on *bool) func([]commit.Item) error {
	return func(items []commit.Item) error {
		if *on && slices.ContainsFunc(items, func(it commit.Item) bool { return !it.FailureMark && it.Main < 1000 }) {
			return fault.New(fault.Document, "sql: apply", "547", "a constraint refuses the row")
		}
		return nil
	}
}

// brokenEvidence is an evidence store that may be down.
type brokenEvidence struct {
	commit.Evidence
	down  bool
	asked int
}

func (b *brokenEvidence) Keep(ctx context.Context, name string, content []byte) error {
	if b.asked++; b.down {
		return fault.New(fault.Infrastructure, "blob: keep", "refused", "nothing listens")
	}
	return b.Evidence.Keep(ctx, name, content)
}

// contextHook runs a hook with the context before each request.
type contextHook struct {
	commit.Sink
	before func(ctx context.Context, items []commit.Item) error
}

func (s contextHook) Apply(
	ctx context.Context, items []commit.Item, mode commit.Mode, known breaker.Heartbeat,
) ([]commit.DocumentOutcome, error) {
	if err := s.before(ctx, items); err != nil {
		return nil, err
	}
	return s.Sink.Apply(ctx, items, mode, known)
}

// orderedEvidence is an evidence store that records the order of its calls, and is down for one file.
type orderedEvidence struct {
	commit.Evidence
	names []string
	down  int
}

func (k *orderedEvidence) Keep(ctx context.Context, name string, content []byte) error {
	k.names = append(k.names, path.Base(name))
	if len(k.names) == k.down {
		return fault.New(fault.Infrastructure, "blob: keep", "refused", "nothing listens")
	}
	return k.Evidence.Keep(ctx, name, content)
}

// failFor gives err for every request with one of the documents.
func failFor(err error, ids ...string) func([]commit.Item) error {
	return func(items []commit.Item) error {
		if slices.ContainsFunc(items, func(it commit.Item) bool { return slices.Contains(ids, it.DocumentID) }) {
			return err
		}
		return nil
	}
}

// panicking panics at every request with the document.
func panicking(id string) func([]commit.Item) error {
	return func(items []commit.Item) error {
		if failFor(fault.New(fault.Internal, "", "", ""), id)(items) != nil {
			panic("content of the document")
		}
		return nil
	}
}
