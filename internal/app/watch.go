package app

import (
	"context"
	"encoding/json"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/writer"
)

// watchedDocuments tells the status how Cosmos answered, call by call.
type watchedDocuments struct {
	inner writer.Documents
	seen  func(dependency string, err error)
}

// Read implements writer.Documents.
func (w watchedDocuments) Read(ctx context.Context, id string) (json.RawMessage, error) {
	raw, err := w.inner.Read(ctx, id)
	w.seen(depCosmos, err)
	return raw, err
}

// ReadMany implements writer.Documents.
func (w watchedDocuments) ReadMany(ctx context.Context, ids []string) ([]json.RawMessage, error) {
	raws, err := w.inner.ReadMany(ctx, ids)
	w.seen(depCosmos, err)
	return raws, err
}

// Record implements writer.Documents.
func (w watchedDocuments) Record(ctx context.Context, id, etag string, state invoice.State) (string, error) {
	next, err := w.inner.Record(ctx, id, etag, state)
	w.seen(depCosmos, err)
	return next, err
}

// watchedSink tells the status how SQL answered, request by request.
type watchedSink struct {
	inner writer.Sink
	seen  func(dependency string, err error)
}

// Apply implements writer.Sink.
func (w watchedSink) Apply(ctx context.Context, items []writer.Item, mode writer.Mode) ([]writer.Outcome, error) {
	outcomes, err := w.inner.Apply(ctx, items, mode)
	w.seen(depSQL, err)
	return outcomes, err
}

// Heartbeat implements writer.Sink. It counts as an answer of SQL's: one that succeeds says that it is well again.
func (w watchedSink) Heartbeat(ctx context.Context, sysName string) error {
	err := w.inner.Heartbeat(ctx, sysName)
	w.seen(depSQL, err)
	return err
}

// watchedEvidence tells the status how the store of evidence answered.
type watchedEvidence struct {
	inner writer.Evidence
	seen  func(dependency string, err error)
}

// Keep implements writer.Evidence.
func (w watchedEvidence) Keep(ctx context.Context, name string, content []byte) error {
	err := w.inner.Keep(ctx, name, content)
	w.seen(depBlob, err)
	return err
}
