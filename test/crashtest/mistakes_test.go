package crashtest

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/test/inmem"
)

// mistake is an adapter that does something wrong on purpose, the promise that this breaks, and a path on which it
// shows.
type mistake struct {
	name    string
	promise string
	path    *path
	make    func(w *world, p ports) ports
}

func mistakes() []mistake {
	onDocs := func(wrong func(w *world, p commit.Documents) commit.Documents) func(*world, ports) ports {
		return func(w *world, p ports) ports { p.docs = wrong(w, p.docs); return p }
	}
	onRecord := func(wrong recorder) func(*world, ports) ports {
		return onDocs(func(_ *world, p commit.Documents) commit.Documents { return wrongRecord{p, wrong} })
	}
	onState := func(wrong func(s *invoice.State)) func(*world, ports) ports {
		return onRecord(
			func(ctx context.Context, p commit.Documents, doc invoice.Snapshot, s invoice.State) (string, error) {
				wrong(&s)
				return p.Record(ctx, doc, s)
			})
	}
	onApply := func(wrong func(w *world, r *sinkRequest)) func(*world, ports) ports {
		return func(w *world, p ports) ports { p.sink = wrongApply{p.sink, w, wrong}; return p }
	}
	onKeep := func(wrong func(w *world) commit.Evidence) func(*world, ports) ports {
		return func(w *world, p ports) ports { p.evidence = wrong(w); return p }
	}
	return []mistake{
		{
			"a patch ignores the etag", "G2", commitPath(),
			onRecord(
				func(ctx context.Context, p commit.Documents, doc invoice.Snapshot, s invoice.State) (string, error) {
					answer, err := p.Record(ctx, doc, s)
					if fault.Has(err, fault.Changed) {
						doc.ETag = etagNow(p, doc.ID)
						return p.Record(ctx, doc, s)
					}
					return answer, err
				}),
		},
		{
			"a patch is acknowledged and not done", "G1", commitPath(),
			onRecord(
				func(ctx context.Context, p commit.Documents, doc invoice.Snapshot, s invoice.State) (string, error) {
					if s.Status == invoice.Committed {
						return doc.ETag, nil
					}
					return p.Record(ctx, doc, s)
				}),
		},
		{
			"a patch loses the members that nobody knows", "members", commitPath(),
			onState(func(s *invoice.State) { s.Extra = nil }),
		},
		{
			"a patch spends a retry for nothing", "G5", recoverPath(),
			onState(func(s *invoice.State) { s.RetryCount++ }),
		},
		{
			"a retry is set without a due time", "G1", commitPath(),
			onState(func(s *invoice.State) { s.RetryAfter = 0 }),
		},
		{
			"a read of several documents loses one", "G1", recoverPath(),
			onDocs(func(_ *world, p commit.Documents) commit.Documents { return forgetful{p} }),
		},
		{
			"the guard is missing", "G3", recoverPath(),
			onApply(func(w *world, r *sinkRequest) { forgetLedger(w, r.items) }),
		},
		{
			"the guard is missing for marks", "G3", poisonPath(),
			onApply(func(w *world, r *sinkRequest) {
				if r.items[0].FailureMark {
					forgetLedger(w, r.items)
				}
			}),
		},
		{
			"half of a document is written", "G2", commitPath(),
			onApply(func(_ *world, r *sinkRequest) {
				r.items = slices.Clone(r.items)
				for n := range r.items {
					r.items[n].Duplicates = nil
				}
			}),
		},
		{
			"unchanged content is written again", "G4", recoverPath(),
			onApply(func(_ *world, r *sinkRequest) { r.mode = commit.Rewrite }),
		},
		{
			"a failed COMMIT is taken for one that worked", "G2", commitPath(),
			onApply(func(_ *world, r *sinkRequest) { r.mode = commit.Preview }),
		},
		{
			"a mark is acknowledged and not made", "G7", poisonPath(),
			onApply(func(_ *world, r *sinkRequest) {
				if r.items[0].FailureMark {
					r.mode = commit.Preview
				}
			}),
		},
		{
			"a row is written that the ledger does not know of", "invariant", commitPath(),
			onApply(func(w *world, r *sinkRequest) {
				r.after = func() {
					if l, there := w.sink.Line(r.items[0].Main); there {
						values := slices.Clone(l.Values)
						values[1] = invoice.Of("something else")
						w.sink.SetLine(r.items[0].Main, inmem.Line{Tracking: l.Tracking, Values: values})
					}
				}
			}),
		},
		{"an outage is taken for the documents' own error", "G5", commitPath(), func(w *world, p ports) ports {
			w.misjudged = true
			return p
		}},
		{"evidence is kept after the mark", "G7", poisonPath(), func(w *world, p ports) ports {
			e := &lateEvidence{Evidence: p.evidence}
			p.evidence = e
			p.docs = wrongRecord{
				p.docs,
				func(ctx context.Context, p commit.Documents, doc invoice.Snapshot, s invoice.State) (string, error) {
					e.flush(ctx)
					return p.Record(ctx, doc, s)
				},
			}
			return p
		}},
		{
			"error.json is not kept", "G7", poisonPath(),
			onKeep(func(w *world) commit.Evidence { return lossy{w.evidence} }),
		},
		{"due retries are not found", "G1", recoverPath(), func(_ *world, p ports) ports {
			p.finder = blind{p.finder, invoice.RetryScheduled}
			return p
		}},
		{"orphans are not found", "G1", recoverPath(), func(_ *world, p ports) ports {
			p.finder = blind{p.finder, invoice.Pending}
			return p
		}},
	}
}

// TestEveryMistakeIsFound: the machinery notices. Each mistake is found by an assertion of the promise that it breaks,
// with at most one fault.
func TestEveryMistakeIsFound(t *testing.T) {
	require.GreaterOrEqual(t, len(mistakes()), 12)
	for _, m := range append(mistakes(), runMistakes()...) {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			clean, same := without(t, m.path)
			for _, faults := range append([]plan{nil}, singles(len(clean.steps))...) {
				w := try(m.path, faults, same, &m)
				if slices.ContainsFunc(w.seen, func(v violation) bool { return v.promise == m.promise }) {
					t.Logf("found with faults %q: %s: %s", faults, w.seen[0].promise, w.seen[0].what)
					return
				}
			}
			t.Errorf("no assertion of %s noticed", m.promise)
		})
	}
}

// TestTheSchedulerFindsARace: a patch that ignores the etag needs two processes to do its worst: finished work is
// overwritten.
func TestTheSchedulerFindsARace(t *testing.T) {
	i := slices.IndexFunc(mistakes(), func(m mistake) bool { return m.name == "a patch ignores the etag" })
	for seed := int64(1); seed <= 200; seed++ {
		m := mistakes()[i]
		w := interleaved(seed, &m)
		if slices.ContainsFunc(w.seen, func(v violation) bool {
			return strings.Contains(v.what, "was committed, and")
		}) {
			t.Logf("found by seed %d", seed)
			return
		}
	}
	t.Error("200 histories, and finished work was never overwritten")
}

type recorder func(ctx context.Context, p commit.Documents, doc invoice.Snapshot, s invoice.State) (string, error)

type wrongRecord struct {
	commit.Documents
	record recorder
}

func (d wrongRecord) Record(ctx context.Context, doc invoice.Snapshot, s invoice.State) (string, error) {
	return d.record(ctx, d.Documents, doc, s)
}

func etagNow(p commit.Documents, id string) string {
	raw, err := p.Read(context.Background(), id)
	if err != nil {
		return ""
	}
	d, err := invoice.Reader{}.Read(raw, begins())
	if err != nil {
		return ""
	}
	return d.ETag
}

type forgetful struct{ commit.Documents }

func (d forgetful) ReadMany(ctx context.Context, ids []string) ([]json.RawMessage, error) {
	return d.Documents.ReadMany(ctx, ids[1:])
}

// sinkRequest is one of the sink, as a mistake changes it.
type sinkRequest struct {
	items []commit.Item
	mode  commit.Mode
	after func() // a request that succeeded
}

type wrongApply struct {
	commit.Sink
	w     *world
	wrong func(w *world, r *sinkRequest)
}

func (s wrongApply) Apply(
	ctx context.Context, items []commit.Item, mode commit.Mode, known breaker.Heartbeat,
) ([]commit.DocumentOutcome, error) {
	r := sinkRequest{items, mode, func() {}}
	s.wrong(s.w, &r)
	outcomes, err := s.Sink.Apply(ctx, r.items, r.mode, known)
	if err == nil {
		r.after()
	}
	return outcomes, err
}

// forgetLedger removes the ledger entries of the lines of items that exist.
func forgetLedger(w *world, items []commit.Item) {
	for _, it := range items {
		for position := range it.Rows() {
			w.sink.SetEntry(it.Line(position), inmem.Entry{})
		}
	}
}

// lateEvidence keeps files later than it says.
type lateEvidence struct {
	commit.Evidence
	files []func(ctx context.Context)
}

func (e *lateEvidence) Keep(_ context.Context, name string, content []byte) error {
	e.files = append(e.files, func(ctx context.Context) { _ = e.Evidence.Keep(ctx, name, content) })
	return nil
}

func (e *lateEvidence) flush(ctx context.Context) {
	for _, keep := range e.files {
		keep(ctx)
	}
	e.files = nil
}

type lossy struct{ commit.Evidence }

func (e lossy) Keep(ctx context.Context, name string, content []byte) error {
	if strings.HasSuffix(name, "/error.json") {
		return nil
	}
	return e.Evidence.Keep(ctx, name, content)
}

// blind does not find a status.
type blind struct {
	commit.Finder
	status invoice.Status
}

func (b blind) Find(ctx context.Context, q commit.Query, continuation string) (commit.Page, error) {
	page, err := b.Finder.Find(ctx, q, continuation)
	docs, malformed := commit.PendingDocs(page.Documents)
	if malformed != nil {
		return commit.Page{}, malformed
	}
	docs = slices.DeleteFunc(docs, func(w commit.PendingDoc) bool { return w.Status == b.status })
	return inmem.PendingPage(docs, page.Next), err
}
