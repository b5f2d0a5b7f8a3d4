package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/cosmos"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/test/sample"
)

// brokenSink is SQLite behind a wire that breaks. What a real wire does to a request is done to it here: it is lost on
// its way there, or carried out and its answer is lost.
type brokenSink struct {
	commit.Sink
	// breaks decides what becomes of a request.
	breaks func(items []commit.Item) wire

	mu    sync.Mutex
	count int
}

// wire is what becomes of a request on its way.
type wire int

const (
	whole wire = iota
	// cutThere: it does not arrive.
	cutThere
	// cutBack: it is carried out, and the answer does not arrive.
	cutBack
)

// Apply implements commit.Sink.
func (s *brokenSink) Apply(
	ctx context.Context, items []commit.Item, mode commit.Mode, known breaker.Heartbeat,
) ([]commit.DocumentOutcome, error) {
	how := s.breaks(items)
	if how == whole {
		return s.Sink.Apply(ctx, items, mode, known)
	}
	s.mu.Lock()
	s.count++
	s.mu.Unlock()
	if how == cutBack {
		if _, err := s.Sink.Apply(ctx, items, mode, known); err != nil {
			return nil, err
		}
	}
	return nil, fault.Wrap(fault.Infrastructure, "test: apply", "connection", "the connection broke", errors.New("cut"))
}

func (s *brokenSink) broken() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}

// once breaks the first request.
func once(how wire) func([]commit.Item) wire {
	var first sync.Once
	return func([]commit.Item) (out wire) {
		first.Do(func() { out = how })
		return out
	}
}

// each breaks every other request, beginning with the first.
func each(how wire) func([]commit.Item) wire {
	n := 0
	return func([]commit.Item) wire {
		n++
		if n%2 == 1 {
			return how
		}
		return whole
	}
}

// with breaks every request that contains a document.
func with(id string, how wire) func([]commit.Item) wire {
	return func(items []commit.Item) wire {
		if slices.ContainsFunc(items, func(i commit.Item) bool { return i.DocumentID == id }) {
			return how
		}
		return whole
	}
}

// commitHere runs the use case in this process, over the real Cosmos adapter and a sink.
func (s *stack) commitHere(sink commit.Sink) func(docs []sample.Document) commit.Report {
	s.t.Helper()
	docs, err := cosmos.Open(
		cosmos.Options{Connection: s.cosmos.ConnectionString, Database: database, Container: container})
	require.NoError(s.t, err)
	s.t.Cleanup(docs.Close)
	committer := commit.NewCommit(docs, sink, commit.Options{SysName: "web"})
	return func(batch []sample.Document) commit.Report {
		s.t.Helper()
		stored := s.all()
		var raws []json.RawMessage
		for _, d := range batch {
			raws = append(raws, stored[d.ID])
		}
		report, err := committer.Run(s.t.Context(),
			commit.Delivery{Documents: raws, Received: time.Now(), Purpose: commit.FromTimer})
		require.NoError(s.t, err)
		return report
	}
}

// Must show: mid-reply and mid-request cuts. The rows are exact, each is written once, and no document loses a retry.
func TestABrokenConnectionCostsNothingAndWritesOnce(t *testing.T) {
	for name, breaks := range map[string]func() func([]commit.Item) wire{
		"the first request is lost":   func() func([]commit.Item) wire { return once(cutThere) },
		"the first answer is lost":    func() func([]commit.Item) wire { return once(cutBack) },
		"every other request is lost": func() func([]commit.Item) wire { return each(cutThere) },
		"every other answer is lost":  func() func([]commit.Item) wire { return each(cutBack) },
	} {
		t.Run(name, func(t *testing.T) {
			docs := sample.Generate(sample.Options{Seed: 36, Count: 150, Clean: true})
			s := newStack(t, sample.Lines(docs)...)
			s.submit(jsons(docs)...)
			sink := &brokenSink{Sink: s.store, breaks: breaks()}
			report := s.commitHere(sink)(docs)
			s.requireExact(docs)
			requireWrittenOnce(t, s, docs)
			s.requireUncounted()
			require.Positive(t, sink.broken())
			t.Logf("%d of %d requests broken: %v", sink.broken(), report.SQLRequests, report.Outcomes)
		})
	}
}

// Must show: one document whose request breaks its connection each time is isolated; its neighbours commit. When it is
// tried again and the connection works, it ends exact: written once, even if its rows were there all the time.
func TestADocumentThatBreaksItsConnectionIsIsolated(t *testing.T) {
	for name, how := range map[string]wire{"there": cutThere, "back": cutBack} {
		t.Run(name, func(t *testing.T) {
			docs := sample.Generate(sample.Options{Seed: 37, Count: 100, Clean: true})
			s := newStack(t, sample.Lines(docs)...)
			s.submit(jsons(docs)...)
			bad := loneResult(docs)
			sink := &brokenSink{Sink: s.store, breaks: with(docs[bad].ID, how)}
			apply := s.commitHere(sink)
			report := apply(docs)
			s.requireIsolated(docs, bad)
			t.Logf("%d of %d requests broken: %v", sink.broken(), report.SQLRequests, report.Outcomes)

			sink.breaks = func([]commit.Item) wire { return whole }
			s.makeDue(docs[bad].ID)
			apply(docs)
			s.requireExact(docs)
			requireWrittenOnce(t, s, docs)
			outcome := map[wire]string{cutThere: "applied", cutBack: "unchanged"}[how]
			require.Equal(t, outcome, s.state(docs[bad].ID)["outcome"])
		})
	}
}

// loneResult finds a document in the middle whose lines no other document names.
func loneResult(docs []sample.Document) int {
	results := map[int64]int{}
	for _, d := range docs {
		for _, l := range d.Lines {
			results[l]++
		}
	}
	for i := len(docs) / 2; ; i++ {
		if !slices.ContainsFunc(docs[i].Lines, func(l int64) bool { return results[l] > 1 }) {
			return i
		}
	}
}

// requireIsolated: all but one document are committed; that one, which broke its connection, is put off and was charged
// nothing.
func (s *stack) requireIsolated(docs []sample.Document, bad int) {
	s.t.Helper()
	for i, d := range docs {
		state := s.state(d.ID)
		if i != bad {
			require.Equal(s.t, "committed", state["status"], d.Name)
			require.Equal(s.t, 0.0, state["retry_count"], d.Name)
			continue
		}
		require.Equal(s.t, []any{"retry_scheduled", 0.0, "infrastructure"},
			[]any{state["status"], state["retry_count"], state["last_error_kind"]}, d.Name)
	}
}

// makeDue lets a document's wait be over, as time would.
func (s *stack) makeDue(ids ...string) {
	s.t.Helper()
	for _, id := range ids {
		var d map[string]any
		require.NoError(s.t, json.Unmarshal(s.document(id), &d))
		state := maps.Clone(d["sql_writer"].(map[string]any))
		state["retry_after"] = 1
		state["last_error_at"] = invoice.Stamp(time.Now().Add(-time.Hour), time.UTC) // what others wrote since is proof
		d["sql_writer"] = state
		text, err := json.Marshal(d)
		require.NoError(s.t, err)
		s.submit(text)
	}
}
