package reconcile_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/reconcile"
	"sqlwriter/test/inmem"
)

// looking is a way to look at documents.
type looking struct {
	// once: the documents are not read a second time. hasty: a line that was written a moment ago is judged all the same.
	once, hasty bool
	// lag is how far a read of the container may be behind.
	lag time.Duration
	// found counts by class; of are the findings with their cells.
	found map[reconcile.Class]int
	of    []string
}

func newLooking() *looking { return &looking{found: map[reconcile.Class]int{}} }

// look compares all documents that exist with their lines and their evidence, as one step of a run.
func (l *looking) look(h *history, a *actor) {
	circumstances := func() reconcile.Circumstances {
		return reconcile.Circumstances{SysName: "web", Now: h.clock, FlowSince: h.clock.Add(-24 * time.Hour), AdoptedAt: h.clock.Add(-72 * time.Hour)}
	}
	ids := make([]string, historyDocs)
	for n := range ids {
		ids[n] = documentID(n)
	}
	for tries := 0; len(ids) > 0; tries++ {
		if tries == 5 {
			l.found[reconcile.Changing] += len(ids)
			return
		}
		first, ok := l.documents(h, a, ids)
		if !ok || a.park() != nil {
			return
		}
		lines := map[int64]line{}
		for id := range int64(historyLines) {
			lines[id+1] = lineOf(h, id+1)
		}
		second := first
		if !l.once {
			if second, ok = l.documents(h, a, ids); !ok {
				return
			}
		}
		var changed []string
		for _, id := range ids {
			d, found := first[id]
			if d.ETag != second[id].ETag {
				changed = append(changed, id)
				continue
			}
			c := reconcile.Cell{Document: circumstances().DocState(d, found), Evidence: reconcile.EvidenceNotLooked}
			for _, line := range append([]int64{d.Main}, d.Duplicates...) {
				if s := lines[line]; found && line > 0 {
					c.Ledger, c.Rows, c.Fresh = reconcile.LedgerStateOf(d, s.ledger), s.rows, s.ledger.Fresh(h.clock) && !l.hasty
					l.judge(h, reconcile.SubjectLink, c, id, line)
				}
			}
			newest, is := h.newest(id)
			c.Ledger, c.Rows, c.Evidence = reconcile.LedgerNone, reconcile.RowsUnknown, circumstances().EvidenceState(d, newest, is)
			l.judge(h, reconcile.SubjectDocument, c, id, 0)
		}
		for id, s := range lines {
			d, found := first[s.ledger.DocumentID]
			if s.ledger.Outcome == "" || d.ETag != second[s.ledger.DocumentID].ETag || !slices.Contains(ids, s.ledger.DocumentID) {
				continue // it is looked at again with its document
			}
			c := reconcile.Cell{
				Document: circumstances().DocState(d, found), Ledger: reconcile.LedgerStateOf(d, s.ledger), Rows: s.rows,
				Evidence: reconcile.EvidenceNotLooked, Fresh: s.ledger.Fresh(h.clock),
			}
			l.judge(h, reconcile.SubjectLine, c, d.ID, id)
		}
		ids = changed
	}
}

func (l *looking) judge(h *history, s reconcile.Subject, c reconcile.Cell, document string, line int64) {
	r, err := reconcile.Judge(s, c)
	require.NoError(h.t, err)
	l.found[r.Class]++
	switch m, _ := reconcile.MeaningOf(string(r.Class)); {
	case r.Class == reconcile.Stale && h.left[document]:
		l.found["stale, and true"]++
	case m.Finding:
		l.of = append(l.of, fmt.Sprintf("%s: %s %s line %d: %+v", r.Class, s, document, line, c))
	}
}

// documents reads documents, perhaps from a replica that is behind.
func (l *looking) documents(h *history, a *actor, ids []string) (map[string]invoice.Document, bool) {
	if a.park() != nil {
		return nil, false
	}
	at := h.clock
	if l.lag > 0 {
		at = at.Add(-time.Duration(h.r.Int64N(int64(l.lag))))
	}
	found := map[string]invoice.Document{}
	for _, id := range ids {
		if raw := h.at(id, at); raw != nil {
			found[id] = h.read(raw)
		}
	}
	return found, true
}

type line struct {
	ledger reconcile.Ledger
	rows   reconcile.RowState
}

// lineOf is Rows.Lines for one line.
func lineOf(h *history, id int64) line {
	e, known := h.sink.Entry(id)
	row, there := h.sink.Line(id)
	l := line{rows: reconcile.RowsUnknown}
	if known {
		l.ledger = reconcile.Ledger{
			Outcome: e.Outcome, Version: e.Version, DocumentID: e.DocumentID, SysName: e.SysName, SourceTS: e.SourceTS,
			Hash: e.Hash, HashVersion: e.HashVersion, WriteID: fmt.Sprint(e.Write), WrittenAt: h.written[id],
		}
	}
	detail, tracking := invoice.RowHashes(row.Values)
	switch {
	case !there:
		l.rows = reconcile.RowsMissing
	case e.Outcome != inmem.OutcomeApplied:
	case detail != e.DetailHash, row.Tracking && tracking != e.TrackingHash:
		l.rows = reconcile.RowsEdited
	case !row.Tracking:
		l.rows = reconcile.RowsNoTracking
	default:
		l.rows = reconcile.RowsSame
	}
	return l
}

func (h *history) newest(id string) (reconcile.Episode, bool) {
	all := h.episodes[id]
	if len(all) == 0 {
		return reconcile.Episode{}, false
	}
	return reconcile.Episode{DocumentID: id, Folder: all[len(all)-1].folder, At: all[len(all)-1].at}, true
}

// run plays a history with looks beside it.
func (l *looking) run(h *history) {
	for range 250 {
		h.pass()
		switch {
		case len(h.actors) < 3 || len(h.actors) < 8 && h.r.IntN(3) == 0:
			h.act()
		default:
			h.step(h.r.IntN(len(h.actors)))
		}
		if h.r.IntN(10) == 0 {
			h.start(nil, func(a *actor) { l.look(h, a) })
		}
	}
	h.settle()
	h.clock = h.clock.Add(time.Hour)
	l.rest(h)
}

// rest looks while nothing happens.
func (l *looking) rest(h *history) {
	h.start(nil, func(a *actor) { l.look(h, a) })
	for len(h.actors) > 0 {
		h.step(0)
	}
}

// histories is their number, or what HISTORIES says.
func histories() uint64 {
	if n, err := strconv.ParseUint(os.Getenv("HISTORIES"), 10, 64); err == nil {
		return n
	}
	return 100
}

// Documents are written, replayed, reset and lost while they are compared, and nothing is wrong: there is no finding. Then one mistake is
// planted, and found: that and nothing else.
func TestALookFindsWhatIsPlantedAndNothingElse(t *testing.T) {
	met, counted := map[string]int{}, map[reconcile.Class]int{}
	for seed := range histories() {
		h, l := newHistory(t, seed), newLooking()
		if seed%2 > 0 {
			l.lag = 10 * time.Second
		}
		l.run(h)
		require.Empty(t, l.of, "seed %d", seed)
		for class, n := range l.found {
			counted[class] += n
		}
		if clear(h.left); l.found["stale, and true"] > 0 {
			continue
		}
		all := plants()
		slices.SortStableFunc(all, func(a, b plant) int { return met[a.name] - met[b.name] })
		for _, p := range all {
			n := slices.IndexFunc(h.own(), func(o own) bool { return o.state.Status == p.of })
			if n < 0 {
				continue
			}
			p.plant(h, h.own()[n])
			l.lag = 0
			l.rest(h)
			require.Equal(t, p.want, l.classes(), "seed %d: %s: %v", seed, p.name, l.of)
			met[p.name]++
			break
		}
	}
	for _, p := range plants() {
		require.NotZero(t, met[p.name], p.name)
	}
	t.Logf("counted: %v; planted: %v", counted, met)
}

// Each rule of a look is needed: without it there are false findings.
func TestWithoutOneOfItsRulesALookHasFalseFindings(t *testing.T) {
	for name, change := range map[string]func(*looking){
		"the documents are read once":       func(l *looking) { l.once, l.hasty = true, true },
		"a write of a moment ago is judged": func(l *looking) { l.hasty = true },
	} {
		t.Run(name, func(t *testing.T) {
			with, all := 0, os.Getenv("HISTORIES") != ""
			for seed := range histories() {
				l := newLooking()
				change(l)
				if l.run(newHistory(t, seed)); len(l.of) > 0 {
					if with++; !all {
						return
					}
				}
			}
			require.NotZero(t, with)
			t.Logf("false findings in %d of %d histories", with, histories())
		})
	}
}

func (l *looking) classes() []string {
	classes := map[string]bool{}
	for _, f := range l.of {
		class, _, _ := strings.Cut(f, ":")
		classes[class] = true
	}
	return slices.Sorted(maps.Keys(classes))
}

// own is a document whose main line's ledger row names it.
type own struct {
	n     int
	id    string
	line  int64
	state invoice.State
	// content is its manufacturer's name.
	content string
}

func (h *history) own() (all []own) {
	for n := range historyDocs {
		raw := h.now(documentID(n))
		if raw == nil {
			continue
		}
		d := h.read(raw)
		if e, ok := h.sink.Entry(d.Main); ok && e.DocumentID == d.ID && d.State.Outcome != commit.Manual {
			all = append(all, own{n, d.ID, d.Main, d.State, d.Values[0].Text})
		}
	}
	return all
}

type plant struct {
	name  string
	of    invoice.Status
	plant func(h *history, o own)
	want  []string
}

func plants() []plant {
	line := func(change func(*inmem.Line)) func(*history, own) {
		return func(h *history, o own) {
			l, _ := h.sink.Line(o.line)
			change(&l)
			h.sink.SetLine(o.line, l)
		}
	}
	state := func(change func(*invoice.State)) func(*history, own) {
		return func(h *history, o own) {
			change(&o.state)
			h.offer(o.n, o.content, o.state)
			h.clock = h.clock.Add(3 * time.Hour)
		}
	}
	noRow := func(h *history, o own) {
		h.sink.SetEntry(o.line, inmem.Entry{})
		for n := range historyDocs { // the row is missing for every document of the line
			if n != o.n {
				h.past[documentID(n)] = append(h.past[documentID(n)], snapshot{h.clock, nil})
			}
		}
	}
	return []plant{
		{"an edit", invoice.Committed, line(func(l *inmem.Line) { l.Values[0] = invoice.Of("edited") }), []string{"edited"}},
		{"a lost tracking row", invoice.Committed, line(func(l *inmem.Line) { l.Tracking = false }), []string{"tracking_missing"}},
		{"a lost ledger row", invoice.Committed, noRow, []string{"not_in_ledger"}},
		{"a lost mark", invoice.Failed, noRow, []string{"failed_unmarked"}},
		{"lost evidence", invoice.Failed, func(h *history, o own) { delete(h.episodes, o.id) }, []string{"failed_without_evidence"}},
		{"other content", invoice.Committed, func(h *history, o own) { h.offer(o.n, "planted", o.state) }, []string{"stale"}},
		{"a failed document made committed", invoice.Failed, state(func(s *invoice.State) { s.Status = invoice.Committed }), []string{"stale"}},
		{"a committed document made pending", invoice.Committed, state(func(s *invoice.State) { s.Status = invoice.Pending }), []string{"pending_too_long"}},
		{
			"a committed document made failed", invoice.Committed,
			func(h *history, o own) {
				delete(h.episodes, o.id)
				o.state.Status, o.state.LastErrorKind, o.state.FailedAt = invoice.Failed, "document", o.state.CommittedAt
				h.offer(o.n, o.content, o.state)
			},
			[]string{"failed_but_written", "failed_without_evidence"},
		},
		{
			"evidence of nothing", invoice.Committed, func(h *history, o own) {
				h.offer(o.n, o.content, invoice.State{Status: invoice.Committed, CommittedAt: o.state.CommittedAt})
				h.episodes[o.id] = append(h.episodes[o.id], episode{"failed/1/x/0-x", h.clock})
				h.clock = h.clock.Add(2 * time.Hour)
			},
			[]string{"evidence_without_failed"},
		},
	}
}
