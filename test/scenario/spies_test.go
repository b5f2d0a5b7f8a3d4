package scenario

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// sinkSpy wraps the database: it counts requests, lets each take time, and fails it where a rule says so.
type sinkSpy struct{ i *instance }

// request is what a rule sees.
type request struct {
	instance string
	// items is nil for what concerns no document.
	items []commit.Item
	mode  commit.Mode
}

// ofDocuments reports whether a request is for documents; the others are heartbeats, the run store and the audit log.
func (q request) ofDocuments() bool { return q.items != nil }

// rule breaks requests: an error is the request's answer.
type rule func(ctx context.Context, q request) error

// behaviour is what a request is answered that carries the content of a document; nil lets it pass.
type behaviour func(ctx context.Context) error

// Apply implements commit.Sink.
func (d sinkSpy) Apply(
	ctx context.Context, items []commit.Item, mode commit.Mode, known breaker.Heartbeat,
) ([]commit.DocumentOutcome, error) {
	w := d.i.w
	if d.i.name == "shadow" {
		w.mu.Lock()
		if w.shadow.looked++; mode != commit.Preview {
			w.shadow.wrote++
		}
		w.mu.Unlock()
	} else if mode != commit.Preview {
		w.mu.Lock()
		w.requests = append(w.requests, asked{time.Now(), d.i.name, len(items)})
		for _, it := range items {
			if found := w.byLine[it.Main]; found != nil && !it.FailureMark {
				found.tries = append(found.tries, time.Now())
			}
		}
		w.mu.Unlock()
	}
	if err := w.spend(ctx, w.cost); err != nil {
		return nil, err
	}
	if err := w.breaks(ctx, request{instance: d.i.name, items: items, mode: mode}); err != nil {
		return nil, err
	}
	out, err := w.base.Apply(ctx, items, mode, known)
	if err == nil && mode != commit.Preview {
		w.noteApplied(items, out, mode)
	}
	return out, err
}

// noteApplied notes when content was applied; a rewrite is of documents that were.
func (w *world) noteApplied(items []commit.Item, out []commit.DocumentOutcome, mode commit.Mode) {
	w.mu.Lock()
	defer w.mu.Unlock()
	applied := false
	for i, o := range out {
		if o.Verdict != invoice.OutcomeApplied || items[i].FailureMark {
			continue
		}
		if applied = true; mode == commit.Rewrite {
			w.rewritten[items[i].DocumentID]++
		}
	}
	if applied && mode == commit.Write {
		w.applied = append(w.applied, time.Now())
	}
}

// heartbeat is a request that concerns no document.
func (d sinkSpy) heartbeat(ctx context.Context, beat func(context.Context) error) error {
	w := d.i.w
	w.mu.Lock()
	w.heartbeats = append(w.heartbeats, asked{at: time.Now(), instance: d.i.name})
	w.mu.Unlock()
	if err := w.spend(ctx, 2*time.Millisecond); err != nil {
		return err
	}
	if err := w.breaks(ctx, request{instance: d.i.name}); err != nil {
		return err
	}
	return beat(ctx)
}

// spend lets a request take its time. One that is given up is answered as a driver does.
func (w *world) spend(ctx context.Context, d time.Duration) error {
	if pause(ctx, d) != nil {
		return timeout(ctx)
	}
	return nil
}

// breaks asks the rules, then the documents. A failure mark meets the rules alone: it carries no content.
func (w *world) breaks(ctx context.Context, q request) error {
	w.mu.Lock()
	rules := w.rules
	var behave []behaviour
	for _, it := range q.items {
		if d := w.byLine[it.Main]; d != nil && d.behaves != nil && !it.FailureMark && q.mode != commit.Preview {
			behave = append(behave, d.behaves)
		}
	}
	w.mu.Unlock()
	for _, r := range rules {
		if err := r(ctx, q); err != nil {
			return err
		}
	}
	for _, b := range behave {
		if err := b(ctx); err != nil {
			return err
		}
	}
	return nil
}

// rule adds one.
func (w *world) rule(r rule) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rules = append(w.rules[:len(w.rules):len(w.rules)], r)
}

// documentsSpy wraps the container: patches come back on the feed, as in Cosmos DB.
type documentsSpy struct {
	commit.Documents
	i *instance
}

// Record implements commit.Documents.
func (d documentsSpy) Record(ctx context.Context, doc invoice.Snapshot, state invoice.State) (string, error) {
	w := d.i.w
	if w.patchCost > 0 {
		if err := w.spend(ctx, w.patchCost); err != nil {
			return "", err
		}
	}
	etag, err := d.Documents.Record(ctx, doc, state)
	if err == nil {
		w.recorded(doc.ID, state)
		w.changed(w.rangeOf(doc.ID), doc.ID)
	}
	return etag, err
}

func (w *world) rangeOf(id string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if d := w.docOf[id]; d != nil {
		return d.rng
	}
	return 0
}

// Read implements commit.Documents.
func (d documentsSpy) Read(ctx context.Context, id string) (json.RawMessage, error) {
	raw, err := d.Documents.Read(ctx, id)
	return d.i.reads(raw), err
}

// ReadMany implements commit.Documents.
func (d documentsSpy) ReadMany(ctx context.Context, ids []string) ([]json.RawMessage, error) {
	raws, err := d.Documents.ReadMany(ctx, ids)
	for i, raw := range raws {
		raws[i] = d.i.reads(raw)
	}
	return raws, err
}

// reads is a document as the instance's build understands it: a misreading one sees a value that no column takes.
func (i *instance) reads(raw json.RawMessage) json.RawMessage {
	if !i.build.misreads {
		return raw
	}
	return bytes.Replace(raw, []byte(`"425"`), []byte(`"`+string(bytes.Repeat([]byte("4"), 300))+`"`), 1)
}

// controlSpy wraps the control document and sees the breaker's state.
type controlSpy struct{ i *instance }

// Load implements the product's port.
func (d controlSpy) Load(ctx context.Context) (control, string, error) {
	store, err := d.store("load")
	if err != nil {
		return control{}, "", err
	}
	return store.Load(ctx)
}

// Store implements the product's port.
func (d controlSpy) Store(ctx context.Context, c control, etag string) (string, error) {
	store, err := d.store("store")
	if err != nil {
		return "", err
	}
	etag, err = store.Store(ctx, c, etag)
	if err == nil {
		w := d.i.w
		is, why := flowOf(c)
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.flowNow() != is {
			w.flow = append(w.flow, change{time.Now(), is, why})
		}
		w.poison[c.Poison.Hour] = max(w.poison[c.Poison.Hour], c.Poison.Count)
	}
	return etag, err
}

// LoadStatuses implements the product's port.
func (d controlSpy) LoadStatuses(ctx context.Context, since time.Time) ([]breaker.Status, error) {
	store, err := d.store("load statuses of")
	if err != nil {
		return nil, err
	}
	return store.LoadStatuses(ctx, since)
}

// StoreStatus implements the product's port.
func (d controlSpy) StoreStatus(ctx context.Context, s breaker.Status) error {
	store, err := d.store("store status of")
	if err != nil {
		return err
	}
	return store.StoreStatus(ctx, s)
}

func (d controlSpy) store(op string) (controlStore, error) {
	w := d.i.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.controlDown {
		return nil,
			fault.New(fault.Infrastructure, "scenario: "+op+" control", "503", "the control document cannot be had")
	}
	return w.control, nil
}
