package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"sqlwriter/internal/timer"
	"sqlwriter/test/sample"
)

const (
	// outageFor is the length of the outage, outageCount the number of documents that arrive during it.
	outageFor   = 10 * time.Second
	outageCount = 200
	// outageFirstLine is the first line id of these documents, apart from the lines of the other samples.
	outageFirstLine = 3000001
)

// outageSamples returns the documents that arrive while SQL is off.
func outageSamples() []sample.Document {
	docs := sample.Generate(
		sample.Options{Seed: sample.DefaultSeed + 1, Count: outageCount, FirstLine: outageFirstLine, Clean: true})
	for i := range docs {
		docs[i].Name = "outage " + docs[i].Name
		if docs[i].After != "" {
			docs[i].After = "outage " + docs[i].After
		}
	}
	return docs
}

// outage switches SQL off while documents arrive, and prints the effect.
func (d *drain) outage(ctx context.Context, docs []sample.Document) (err error) {
	if d.db.power == nil {
		d.out.linef(
			"\nno outage: SQL_CONNECTION names an instance without a port, or Azure SQL, which a proxy cannot stand in for")
		return nil
	}
	if err := d.db.power.Off(ctx); err != nil {
		return err
	}
	off := true
	defer func() {
		if off {
			err = errors.Join(err, d.db.power.On(context.WithoutCancel(ctx)))
		}
	}()
	began := time.Now()
	if err := d.submit(ctx, docs); err != nil {
		return err
	}
	if err := timer.Wait(ctx, outageFor-time.Since(began)); err != nil {
		return err
	}
	waiting, retries, err := d.countWaiting(ctx, docs)
	if err != nil {
		return err
	}
	off = false
	if err := d.db.power.On(ctx); err != nil {
		return err
	}
	back := time.Now()
	d.out.linef("\nSQL was off for %.0f s while %d documents arrived: %d of them waited, %d retries spent",
		back.Sub(began).Seconds(), len(docs), waiting, retries)
	last := back
	for _, doc := range docs {
		s, err := d.watch.wait(ctx, doc.ID, "")
		if err != nil {
			return fmt.Errorf("%s (status %q): %w", doc.Name, s.status, err)
		}
		if s.at.After(last) {
			last = s.at
		}
	}
	_, retries, err = d.countWaiting(ctx, docs)
	if err != nil {
		return err
	}
	d.out.linef(
		"all %d committed %.1f s after SQL came back, %d retries spent (the host offers a batch again every 10 s; a stopped flow lets one probe through a minute)",
		len(docs), last.Sub(back).Seconds(), retries)
	return nil
}

// submit submits documents and does not wait for them.
func (d *drain) submit(ctx context.Context, docs []sample.Document) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(submitters)
	for _, doc := range docs {
		g.Go(func() error { return d.watch.container.Put(ctx, doc.JSON) })
	}
	return g.Wait()
}

// countWaiting returns how many of the documents wait, and the retries that all of them have spent.
func (d *drain) countWaiting(ctx context.Context, docs []sample.Document) (waiting, retries int, err error) {
	stored, err := d.stored(ctx)
	if err != nil {
		return 0, 0, err
	}
	for _, doc := range docs {
		var s state
		if err := json.Unmarshal(stored[doc.ID], &s); err != nil {
			return 0, 0, fmt.Errorf("%s: %w", doc.Name, err)
		}
		if s.Writer.Status == "pending" {
			waiting++
		}
		retries += s.Writer.RetryCount
	}
	return waiting, retries, nil
}
