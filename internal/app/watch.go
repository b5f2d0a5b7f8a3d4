package app

import (
	"context"
	"encoding/json"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
)

// watchedDocuments reports the result of every call of Cosmos DB to the status.
type watchedDocuments struct {
	inner commit.Documents
	seen  func(ctx context.Context, dependency string, err error)
}

// Read implements commit.Documents.
func (w watchedDocuments) Read(ctx context.Context, id string) (json.RawMessage, error) {
	raw, err := w.inner.Read(ctx, id)
	w.seen(ctx, depCosmos, err)
	return raw, err
}

// ReadMany implements commit.Documents.
func (w watchedDocuments) ReadMany(ctx context.Context, ids []string) ([]json.RawMessage, error) {
	raws, err := w.inner.ReadMany(ctx, ids)
	w.seen(ctx, depCosmos, err)
	return raws, err
}

// Record implements commit.Documents.
func (w watchedDocuments) Record(ctx context.Context, doc invoice.Snapshot, state invoice.State) (string, error) {
	next, err := w.inner.Record(ctx, doc, state)
	w.seen(ctx, depCosmos, err)
	return next, err
}

// watchedFinder reports the result of every window's page to the status: an idle app asks Cosmos DB nothing else.
type watchedFinder struct {
	inner commit.Finder
	seen  func(ctx context.Context, dependency string, err error)
}

// Find implements commit.Finder.
func (w watchedFinder) Find(ctx context.Context, q commit.Query, continuation string) (commit.Page, error) {
	page, err := w.inner.Find(ctx, q, continuation)
	w.seen(ctx, depCosmos, err)
	return page, err
}

// watchedSink reports the result of every call of SQL to the status. A heartbeat that succeeds ends a failure.
type watchedSink struct {
	inner commit.Sink
	seen  func(ctx context.Context, dependency string, err error)
}

// Apply implements commit.Sink.
func (w watchedSink) Apply(
	ctx context.Context, items []commit.Item, mode commit.Mode, known breaker.Heartbeat,
) ([]commit.DocumentOutcome, error) {
	outcomes, err := w.inner.Apply(ctx, items, mode, known)
	w.seen(ctx, depSQL, err)
	return outcomes, err
}

// Heartbeat implements commit.Sink.
func (w watchedSink) Heartbeat(ctx context.Context, known breaker.Heartbeat) (breaker.Heartbeat, error) {
	row, err := w.inner.Heartbeat(ctx, known)
	w.seen(ctx, depSQL, err)
	return row, err
}

// TakeOver implements commit.Sink.
func (w watchedSink) TakeOver(ctx context.Context, known breaker.Heartbeat) (breaker.Heartbeat, error) {
	row, err := w.inner.TakeOver(ctx, known)
	w.seen(ctx, depSQL, err)
	return row, err
}

// watchedEvidence reports the result of every call of the evidence store to the status.
type watchedEvidence struct {
	inner commit.Evidence
	seen  func(ctx context.Context, dependency string, err error)
}

// Keep implements commit.Evidence.
func (w watchedEvidence) Keep(ctx context.Context, name string, content []byte) error {
	err := w.inner.Keep(ctx, name, content)
	w.seen(ctx, depBlob, err)
	return err
}

// watchedMessages reports to the status how Service Bus answers the recovery timer: an idle app sends no message.
type watchedMessages struct {
	ops.Messages
	seen func(ctx context.Context, dependency string, err error)
}

// Count implements ops.Messages. Without the right to look nothing is known of sending.
func (w watchedMessages) Count(ctx context.Context, most int) (active, deadLettered ops.Count, err error) {
	active, deadLettered, err = w.Messages.Count(ctx, most)
	if fault.CodeOf(err) != "unauthorized" {
		w.seen(ctx, depServiceBus, err)
	}
	return active, deadLettered, err
}
