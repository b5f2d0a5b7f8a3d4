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

	"sqlwriter/internal/config"
	"sqlwriter/test/emulators/cosmosdb"
	"sqlwriter/test/sample"
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
	if err := d.show(ctx, d.docs[0]); err != nil {
		return false, err
	}
	writes, reads, err := d.all(ctx, d.docs[1:])
	if err != nil {
		return false, err
	}
	if d.outages {
		docs := outageSamples()
		if err := d.outage(ctx, docs); err != nil {
			return false, err
		}
		d.docs = append(d.docs, docs...)
	}
	return d.verify(ctx, writes, reads)
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

// all submits documents and waits for them. It returns the handler's writes and reads of the container.
func (d *drain) all(ctx context.Context, todo []sample.Document) (writes, reads int, err error) {
	if err := d.stats(ctx, http.MethodDelete, nil); err != nil {
		return 0, 0, err
	}
	g, waiting := errgroup.WithContext(ctx)
	slots := make(chan struct{}, submitters)
	finished, total := 0, len(todo)
	for _, doc := range todo {
		g.Go(func() error {
			if err := d.put(waiting, doc, slots); err != nil {
				return err
			}
			d.mu.Lock()
			defer d.mu.Unlock()
			finished++
			if finished*4/total > (finished-1)*4/total { // at each quarter
				d.out.linef("  %d of %d documents", finished, total)
			}
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
