package reconcile_test

import (
	"os"
	"strconv"
	"time"

	"sqlwriter/internal/invoice"
	"sqlwriter/test/inmem"
)

// histories is their number, or what HISTORIES says.
func histories() uint64 {
	if n, err := strconv.ParseUint(os.Getenv("HISTORIES"), 10, 64); err == nil {
		return n
	}
	return 100
}

// own is a document whose main line's ledger row names it.
type own struct {
	n     int
	id    string
	line  int64
	state invoice.State
	// content is its manufacturer's name.
	content string
	// applied: the line has that content, even if the document failed since.
	applied bool
}

func (h *history) own() (all []own) {
	for n := range historyDocs {
		raw := h.now(documentID(n))
		if raw == nil {
			continue
		}
		d := h.read(raw)
		if e, ok := h.sink.Entry(d.Main); ok && e.DocumentID == d.ID && d.State.Outcome != invoice.OutcomeManual {
			all = append(all, own{n, d.ID, d.Main, d.State, d.Values[0].Text, e.Hash == d.Hash})
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
		{
			"an edit", invoice.Committed, line(func(l *inmem.Line) {
				l.Values[0] = invoice.Of("edited")
			}), []string{"edited"},
		},
		{
			"a lost tracking row", invoice.Committed, line(func(l *inmem.Line) { l.Tracking = false }),
			[]string{"tracking_missing"},
		},
		{"a lost ledger row", invoice.Committed, noRow, []string{"not_in_ledger"}},
		{"other content", invoice.Committed, func(h *history, o own) {
			h.offer(o.n, "planted", o.state)
		}, []string{"stale"}},
		{
			"a failed document made committed", invoice.Failed, state(func(s *invoice.State) {
				s.Status = invoice.Committed
			}), []string{"stale"},
		},
	}
}
