package inmem_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/inmem"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/porttest"
)

func TestSink(t *testing.T) {
	porttest.TestSink(t, func(testing.TB) porttest.SinkHarness {
		s := inmem.NewSink()
		return porttest.SinkHarness{
			Sink:     s,
			AddLines: func(_ testing.TB, lines ...int64) { s.AddLines(lines...) },
			Row: func(_ testing.TB, line int64) porttest.SinkRow {
				l, ok := s.Line(line)
				if !ok {
					l.Values = nulls()
				}
				return porttest.SinkRow{Detail: ok, Tracking: l.Tracking, Values: l.Values}
			},
			SetRow: func(t testing.TB, line int64, r porttest.SinkRow) {
				require.True(t, r.Detail)
				s.SetLine(line, inmem.Line{Tracking: r.Tracking, Values: r.Values})
			},
			Ledger: func(_ testing.TB, line int64) (porttest.LedgerRow, bool) {
				e, ok := s.Entry(line)
				return porttest.LedgerRow{
					Version: e.Version, DocumentID: e.DocumentID, SourceTS: e.SourceTS, Hash: e.Hash,
					HashVersion: e.HashVersion, RowHash: e.RowHash, Outcome: e.Outcome,
				}, ok
			},
			SetLedger: func(_ testing.TB, line int64, l porttest.LedgerRow) {
				s.SetEntry(line, inmem.Entry{
					Version: l.Version, DocumentID: l.DocumentID, SourceTS: l.SourceTS, Hash: l.Hash,
					HashVersion: l.HashVersion, RowHash: l.RowHash, Outcome: l.Outcome,
				})
			},
			Refuse: func(_ testing.TB, value string) {
				s.Refuse(func(_ int64, _ invoice.Column, v invoice.Value) bool { return !v.Null && v.Text == value })
			},
			CountWrites: countWrites(s),
		}
	})
}

// countWrites counts as a trigger would: the sink asks whether a value may be written exactly when it writes the line.
func countWrites(s *inmem.Sink) func(testing.TB) func(int64) (int, int) {
	return func(testing.TB) func(int64) (int, int) {
		var mu sync.Mutex
		seen := map[int64]map[invoice.Table]int{}
		s.Refuse(func(line int64, c invoice.Column, _ invoice.Value) bool {
			mu.Lock()
			defer mu.Unlock()
			if seen[line] == nil {
				seen[line] = map[invoice.Table]int{}
			}
			if c.Name == invoice.StatusColumn { // one in each table
				seen[line][c.Table]++
			}
			return false
		})
		return func(line int64) (int, int) {
			mu.Lock()
			defer mu.Unlock()
			return seen[line][invoice.Detail], seen[line][invoice.Tracking]
		}
	}
}

func nulls() []invoice.Value {
	values := make([]invoice.Value, len(invoice.Columns()))
	for i := range values {
		values[i] = invoice.Null()
	}
	return values
}
