package inmem_test

import (
	"sync"
	"testing"
	"time"

	"sqlwriter/internal/run"
	"sqlwriter/test/conformance"
	"sqlwriter/test/inmem"
)

func TestRunStore(t *testing.T) {
	conformance.TestRunStore(t, func(testing.TB) conformance.RunStoreFixture {
		var mu sync.Mutex
		clock := time.Date(2025, 12, 18, 10, 0, 0, 123_456_789, time.FixedZone("", -6*3600))
		now := func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return clock
		}
		s := inmem.NewRunStore(now, "web")
		return conformance.RunStoreFixture{
			Store: s, For: func(sysName string) run.Store { return s.For(sysName) }, Now: now,
			Age: func(_ testing.TB, d time.Duration) {
				mu.Lock()
				defer mu.Unlock()
				clock = clock.Add(d)
			},
			Audits:  func(testing.TB) []run.Audit { return s.Audits() },
			Workers: workersOf(s),
		}
	})
}

// workersOf gives the rows of the table worker.
func workersOf(s *inmem.RunStore) func(testing.TB) []conformance.RunWorker {
	return func(testing.TB) []conformance.RunWorker {
		list := []conformance.RunWorker{}
		for _, w := range s.Workers() {
			list = append(list,
				conformance.RunWorker{
					ID: w.ID, Instance: w.Instance, Kind: w.Kind, Status: w.Status, Processed: w.Processed,
				})
		}
		return list
	}
}
