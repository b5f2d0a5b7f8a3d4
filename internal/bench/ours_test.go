package bench

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/inmem"
	"sqlwriter/internal/writer"
)

// verdicts says what each kind of documents must be answered with: a measurement of something else is none.
func verdicts(k kind) writer.Verdict {
	switch k {
	case unchanged:
		return writer.Unchanged
	case stale:
		return writer.Superseded
	case first, repeat, oneBad:
	}
	return writer.Applied
}

// The names of our ways. The goals look them up.
const (
	ours100   = "ours, 100 a request"
	ours25    = "ours, 25 a request"
	ours1     = "ours, 1 a request"
	ours500   = "ours, 500 as five requests"
	useCase   = "ours through the use case, 100"
	bareName  = "bare statements, 100 a request"
	mergeName = "MERGE as the output binding, 100 a call"
)

// waysOver are our ways of writing over a sink: the port itself, and the use case with its bisect.
func waysOver(sink writer.Sink) []way {
	apply := func(ctx context.Context, docs []doc, k kind) error {
		return chunks(docs, 100, func(docs []doc) error {
			out, err := sink.Apply(ctx, itemsOf(docs), writer.Write, breaker.Heartbeat{})
			if err != nil {
				return err
			}
			for _, o := range out {
				if o.Verdict != verdicts(k) {
					return fmt.Errorf("document %s: expected %s, found %s", o.DocumentID, verdicts(k), o.Verdict)
				}
			}
			return nil
		})
	}
	both := []kind{first, repeat}
	return []way{
		{ours, ours1, 1, both, apply},
		{ours, ours25, 25, both, apply},
		{ours, ours100, 100, []kind{first, repeat, unchanged, stale}, apply},
		{ours, ours500, 500, both, apply},
		{ours, useCase, 100, []kind{first, oneBad}, func(ctx context.Context, docs []doc, k kind) error {
			return commit(ctx, sink, docs, k)
		}},
	}
}

// commit takes documents through the use case, which reads them, writes them, bisects a refused request and records every
// outcome. The documents are in memory, so what is measured beside SQL is only our own work on them.
func commit(ctx context.Context, sink writer.Sink, docs []doc, k kind) error {
	container := inmem.NewDocuments(time.Now)
	batch := writer.Batch{Received: time.Now()}
	for _, d := range docs {
		if err := container.Put(d.raw); err != nil {
			return err
		}
		raw, err := container.Read(ctx, d.item.DocumentID)
		if err != nil {
			return err
		}
		batch.Documents = append(batch.Documents, raw)
	}
	report, err := writer.NewCommit(container, sink, writer.Options{SysName: "web", Log: zerolog.Nop()}).Run(ctx, batch)
	if err != nil {
		return err
	}
	bad := 0
	if k == oneBad {
		bad = 1
	}
	if report.Outcomes["applied"] != len(docs)-bad || report.Outcomes["retry_scheduled"] != bad {
		return fmt.Errorf("expected %d applied and %d to be tried again, found %v", len(docs)-bad, bad, report.Outcomes)
	}
	return nil
}

// counted counts the requests of a sink that has no wire to count them on.
type counted struct {
	writer.Sink
	n *atomic.Int64
}

// Apply implements writer.Sink.
func (c counted) Apply(ctx context.Context, items []writer.Item, mode writer.Mode, known breaker.Heartbeat) ([]writer.Outcome, error) {
	c.n.Add(1)
	return c.Sink.Apply(ctx, items, mode, known)
}
