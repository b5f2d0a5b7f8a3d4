package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"sqlwriter/cmd/local/sample"
	"sqlwriter/internal/config"
	"sqlwriter/test/emulators/cosmosdb"
)

// submitters is how many documents are submitted at the same time.
const submitters = 16

// samples returns the documents of the drain. The first one is shown in detail.
func samples() ([]sample.Document, error) {
	docs, err := sample.Examples()
	if err != nil {
		return nil, err
	}
	return append(docs, sample.Generate(sample.Options{Seed: sample.DefaultSeed, Count: sample.DefaultCount})...), nil
}

// allSamples returns the documents of the drain and of the outage.
func allSamples() ([]sample.Document, error) {
	docs, err := samples()
	return append(docs, outageSamples()...), err
}

// drain is the run of the samples.
type drain struct {
	*stack
	docs []sample.Document

	mu sync.Mutex
	// sent is the time just before each document was submitted, by name. took is the time until it was final.
	sent map[string]time.Time
	took map[string]time.Duration
	last time.Time
}

// samples shows one document, drains the others, and reports whether all documents and rows are exact.
func (s *stack) samples(ctx context.Context) (exact bool, err error) {
	docs, err := samples()
	if err != nil {
		return false, err
	}
	d := &drain{stack: s, docs: docs, sent: map[string]time.Time{}, took: map[string]time.Duration{}}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	follow, err := s.watch.start(ctx)
	if err != nil {
		return false, err
	}
	g, running := errgroup.WithContext(ctx)
	g.Go(follow)
	g.Go(func() (err error) {
		defer cancel() // ends follow
		exact, err = d.run(running)
		return err
	})
	return exact, g.Wait()
}

func (d *drain) run(ctx context.Context) (exact bool, err error) {
	stored, err := d.stored(ctx)
	if err != nil {
		return false, err
	}
	for _, raw := range stored {
		if err := d.watch.note(time.Time{}, raw); err != nil {
			return false, err
		}
	}
	if len(stored) > 0 {
		d.out.Linef("from an earlier run: %d documents; missing ones are submitted, the others are only checked", len(stored))
		d.before = nil
		if err := d.finish(ctx, stored); err != nil {
			return false, err
		}
	}
	todo := d.missing(stored)
	if len(todo) > 0 && todo[0].Name == d.docs[0].Name {
		if err := d.show(ctx, todo[0]); err != nil {
			return false, err
		}
		todo = todo[1:]
	}
	writes, reads, err := d.all(ctx, todo)
	if err != nil {
		return false, err
	}
	if d.outages {
		extra := &drain{stack: d.stack, docs: outageSamples()}
		if err := d.outage(ctx, extra.missing(stored)); err != nil {
			return false, err
		}
		d.docs = append(d.docs, extra.docs...)
	}
	return d.verify(ctx, writes, reads)
}

// finish waits for documents that an earlier run left unfinished, because the check needs final documents.
func (d *drain) finish(ctx context.Context, stored map[string]json.RawMessage) error {
	var open []sample.Document
	for _, doc := range d.docs {
		if now, _, _ := d.watch.get(doc.ID); stored[doc.ID] != nil && !doc.Want.LeftAlone() && !now.final() {
			open = append(open, doc)
		}
	}
	if len(open) == 0 {
		return nil
	}
	d.out.Linef("%d of them were unfinished and are processed first", len(open))
	for _, doc := range open {
		if s, err := d.watch.wait(ctx, doc.ID, ""); err != nil {
			return fmt.Errorf("%s, from an earlier run (status %q): %w; FRESH=1 deletes the state", doc.Name, s.status, err)
		}
	}
	return nil
}

// stored reads all documents of the container, by id.
func (d *drain) stored(ctx context.Context) (map[string]json.RawMessage, error) {
	all := map[string]json.RawMessage{}
	err := d.documents.Query(ctx, "SELECT * FROM c", nil, func(page []json.RawMessage) (bool, error) {
		for _, raw := range page {
			var head struct {
				ID string `json:"id"`
			}
			if err := json.Unmarshal(raw, &head); err != nil {
				return false, err
			}
			all[head.ID] = raw
		}
		return true, nil
	})
	return all, err
}

// missing lists the documents that must still be submitted. A second document with an id counts as submitted once the
// stored document has one of its expected outcomes.
func (d *drain) missing(stored map[string]json.RawMessage) []sample.Document {
	var todo []sample.Document
	named := map[string]bool{}
	for _, doc := range d.docs {
		again := named[doc.ID]
		named[doc.ID] = true
		now, _, _ := d.watch.get(doc.ID)
		if stored[doc.ID] == nil || (again && !slices.Contains(doc.Want.Outcomes, now.outcome)) {
			todo = append(todo, doc)
		}
	}
	return todo
}

// put submits one document after the document it depends on, and waits until it is final. slots bounds the concurrent
// submissions, not the waits.
func (d *drain) put(ctx context.Context, doc sample.Document, slots chan struct{}) error {
	if doc.After != "" {
		before := d.docs[slices.IndexFunc(d.docs, func(o sample.Document) bool { return o.Name == doc.After })]
		if _, err := d.watch.wait(ctx, before.ID, ""); err != nil {
			return fmt.Errorf("%s waits for %s: %w", doc.Name, before.Name, err)
		}
	}
	old, _, _ := d.watch.get(doc.ID)
	slots <- struct{}{}
	start := time.Now()
	err := d.watch.container.Put(ctx, doc.JSON)
	<-slots
	if err != nil {
		return fmt.Errorf("%s: %w", doc.Name, err)
	}
	d.mu.Lock()
	d.sent[doc.Name] = start
	d.mu.Unlock()
	if doc.Want.LeftAlone() {
		return nil // verify checks it at the end
	}
	s, err := d.watch.wait(ctx, doc.ID, old.etag)
	if err != nil {
		return fmt.Errorf("%s (status %q): %w", doc.Name, s.status, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.took[doc.Name] = s.at.Sub(start)
	if s.at.After(d.last) {
		d.last = s.at
	}
	return nil
}

// all submits documents and waits for them, with a progress bar. It returns the handler's writes and reads of the container.
func (d *drain) all(ctx context.Context, todo []sample.Document) (writes, reads int, err error) {
	if err := d.stats(ctx, http.MethodDelete, nil); err != nil {
		return 0, 0, err
	}
	defer d.out.Done()
	g, waiting := errgroup.WithContext(ctx)
	slots := make(chan struct{}, submitters)
	finished, total := 0, len(todo)
	for _, doc := range todo {
		g.Go(func() error {
			if err := d.put(waiting, doc, slots); err != nil {
				return err
			}
			d.mu.Lock()
			finished++
			done := finished
			d.mu.Unlock()
			d.out.Progress(done, total, "documents")
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return 0, 0, err
	}
	var stats []cosmosdb.Stat
	if err := d.stats(ctx, http.MethodGet, &stats); err != nil {
		return 0, 0, err
	}
	for _, s := range stats {
		if s.Container != d.settings[config.CosmosContainer] {
			continue
		}
		switch s.Op { //nolint:exhaustive // the other operations are not the handler's
		case cosmosdb.OpPatch:
			writes += s.Requests
		case cosmosdb.OpRead, cosmosdb.OpQuery, cosmosdb.OpReadMany:
			reads += s.Requests
		}
	}
	return writes, reads, nil
}
