package run_test

import (
	"context"
	"encoding/json"
	"maps"
	"sync"
	"time"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/test/inmem"
)

// fakeWrites replaces documents and Commit in tests of the run alone. A document is applied the first time and
// unchanged later.
type fakeWrites struct {
	ids []string

	mu      sync.Mutex
	written map[string]int
	// took is how long a Commit takes; during says what happens meanwhile.
	delay  time.Duration
	during func(ctx context.Context, i *instance) error
	// unreported are documents without a result; results replace the results of others.
	unreported map[string]bool
	results    map[string]commit.DocumentResult
}

// fakeWrites replaces documents and Commit of the instances to come, and returns the ids.
func (w *world) fakeWrites(n int) []string {
	w.fake = &fakeWrites{written: map[string]int{}, unreported: map[string]bool{}}
	for k := range n {
		w.fake.ids = append(w.fake.ids, docID(k+1))
	}
	return w.fake.ids
}

// writes counts the writes of each document.
func (l *fakeWrites) writes() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.written)
}

type spyFakeWrites struct{ i *instance }

// Find returns pages of 1,000.
func (d spyFakeWrites) Find(ctx context.Context, _ commit.Query, continuation string) (page commit.Page, err error) {
	const size = 1000
	var found []commit.PendingDoc
	next := ""
	l := d.i.w.fake
	err = d.i.use(ctx, "Page", false, func() error {
		at := 0
		if continuation != "" {
			if err := json.Unmarshal([]byte(continuation), &at); err != nil {
				return fault.New(fault.Document, "test: page", "continuation", "none")
			}
		}
		for _, id := range l.ids[at:min(len(l.ids), at+size)] {
			found = append(found, commit.PendingDoc{ID: id, Status: invoice.Pending})
		}
		if at += size; at < len(l.ids) {
			raw, err := json.Marshal(at)
			next = string(raw)
			return err
		}
		return nil
	})
	return inmem.PendingPage(found, next), err
}

func (d spyFakeWrites) ReadMany(ctx context.Context, ids []string) (raws []json.RawMessage, err error) {
	err = d.i.use(ctx, "ReadMany", false, func() error {
		for _, id := range ids {
			raw, err := json.Marshal(map[string]string{"id": id})
			if err != nil {
				return err
			}
			raws = append(raws, raw)
		}
		return nil
	})
	return raws, err
}

func (d spyFakeWrites) Run(ctx context.Context, b commit.Delivery) (report commit.Report, err error) {
	l := d.i.w.fake
	err = d.i.use(ctx, "Commit", true, func() error {
		l.mu.Lock()
		delay, during := l.delay, l.during
		l.mu.Unlock()
		if delay > 0 {
			time.Sleep(delay)
		}
		if during != nil {
			if err := during(ctx, d.i); err != nil {
				return err
			}
		}
		for _, raw := range b.Documents {
			var doc struct{ ID string }
			if err := json.Unmarshal(raw, &doc); err != nil {
				return err
			}
			l.mu.Lock()
			l.written[doc.ID]++
			outcome, unreported := invoice.OutcomeApplied, l.unreported[doc.ID]
			if l.written[doc.ID] > 1 {
				outcome = invoice.OutcomeUnchanged
			}
			l.mu.Unlock()
			if result, ok := l.results[doc.ID]; ok {
				result.ID = doc.ID
				b.OnResult(result)
			} else if !unreported {
				b.OnResult(commit.DocumentResult{ID: doc.ID, Outcome: outcome})
			}
		}
		return nil
	})
	return report, err
}
