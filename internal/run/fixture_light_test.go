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
	"sqlwriter/internal/run"
)

// light stands for documents and what takes them to SQL, where a test is about the run and not about the writing: every
// document is applied when it first comes and unchanged later.
type light struct {
	ids []string

	mu      sync.Mutex
	written map[string]int
	// took is how long a Commit takes; during says what happens meanwhile.
	took   time.Duration
	during func(ctx context.Context, i *instance) error
	// untold are documents of which nothing is said, tell what is said of others.
	untold map[string]bool
	tell   map[string]commit.DocumentResult
}

// lighten replaces documents and Commit of the instances to come, and answers the ids.
func (w *world) lighten(n int) []string {
	w.light = &light{written: map[string]int{}, untold: map[string]bool{}}
	for k := range n {
		w.light.ids = append(w.light.ids, docID(k+1))
	}
	return w.light.ids
}

// writes counts how often documents were written, by how often.
func (l *light) writes() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.written)
}

type lightDoor struct{ i *instance }

// Page gives pages of 1,000.
func (d lightDoor) Page(ctx context.Context, _ run.Query, continuation string) (found []commit.PendingDoc, next string, err error) {
	const size = 1000
	l := d.i.w.light
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
	return found, next, err
}

func (d lightDoor) ReadMany(ctx context.Context, ids []string) (raws []json.RawMessage, err error) {
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

func (d lightDoor) Run(ctx context.Context, b commit.Batch) (report commit.Report, err error) {
	l := d.i.w.light
	err = d.i.use(ctx, "Commit", true, func() error {
		l.mu.Lock()
		took, during := l.took, l.during
		l.mu.Unlock()
		if took > 0 {
			time.Sleep(took)
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
			outcome, untold := string(commit.Applied), l.untold[doc.ID]
			if l.written[doc.ID] > 1 {
				outcome = string(commit.Unchanged)
			}
			l.mu.Unlock()
			if said, ok := l.tell[doc.ID]; ok {
				said.ID = doc.ID
				b.OnResult(said)
			} else if !untold {
				b.OnResult(commit.DocumentResult{ID: doc.ID, Outcome: outcome})
			}
		}
		return nil
	})
	return report, err
}
