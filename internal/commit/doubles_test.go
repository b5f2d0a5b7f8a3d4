package commit_test

import (
	"context"
	"path"
	"slices"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
)

// sinkThat looks at each request before it is made.
type sinkThat struct {
	commit.Sink
	look func(items []commit.Item) error
}

func (s sinkThat) Apply(ctx context.Context, items []commit.Item, mode commit.Mode, known breaker.Heartbeat) ([]commit.Outcome, error) {
	if err := s.look(items); err != nil {
		return nil, err
	}
	return s.Sink.Apply(ctx, items, mode, known)
}

// markRefuser refuses marks by themselves, as a sink does whose status column is too narrow.
type markRefuser struct{ commit.Sink }

func (s markRefuser) Apply(ctx context.Context, items []commit.Item, mode commit.Mode, known breaker.Heartbeat) ([]commit.Outcome, error) {
	if len(items) == 1 && items[0].FailureMark {
		err := fault.New(fault.Document, "test", "validation.too_long", "refused")
		return []commit.Outcome{{DocumentID: items[0].DocumentID, Refused: err}}, nil
	}
	return s.Sink.Apply(ctx, items, mode, known)
}

// refusing is a database that, when on, refuses every write of content but that of the line of the other document.
type refusing struct {
	commit.Sink
	on bool
}

func (s *refusing) Apply(ctx context.Context, items []commit.Item, mode commit.Mode, known breaker.Heartbeat) ([]commit.Outcome, error) {
	for _, it := range items {
		if s.on && !it.FailureMark && it.Main < 1000 {
			return nil, fault.New(fault.Document, "sql: apply", "547", "a constraint refuses the row")
		}
	}
	return s.Sink.Apply(ctx, items, mode, known)
}

// brokenEvidence is a store that may be down.
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

// contextThat looks at each request and its context before it is made.
type contextThat struct {
	commit.Sink
	look func(ctx context.Context, items []commit.Item) error
}

func (s contextThat) Apply(ctx context.Context, items []commit.Item, mode commit.Mode, known breaker.Heartbeat) ([]commit.Outcome, error) {
	if err := s.look(ctx, items); err != nil {
		return nil, err
	}
	return s.Sink.Apply(ctx, items, mode, known)
}

// keptInOrder is a store of evidence that remembers what it was asked for, and is down for one file.
type keptInOrder struct {
	commit.Evidence
	names []string
	down  int
}

func (k *keptInOrder) Keep(ctx context.Context, name string, content []byte) error {
	k.names = append(k.names, path.Base(name))
	if len(k.names) == k.down {
		return fault.New(fault.Infrastructure, "blob: keep", "refused", "nothing listens")
	}
	return k.Evidence.Keep(ctx, name, content)
}

// about answers err for every request that has a document among ids.
func about(err error, ids ...string) func([]commit.Item) error {
	return func(items []commit.Item) error {
		if slices.ContainsFunc(items, func(it commit.Item) bool { return slices.Contains(ids, it.DocumentID) }) {
			return err
		}
		return nil
	}
}

// panicking panics at every request that has the document.
func panicking(id string) func([]commit.Item) error {
	return func(items []commit.Item) error {
		if about(fault.New(fault.Internal, "", "", ""), id)(items) != nil {
			panic("content of the document")
		}
		return nil
	}
}
