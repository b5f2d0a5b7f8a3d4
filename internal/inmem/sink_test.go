package inmem_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/inmem"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/porttest"
	"sqlwriter/internal/writer"
)

func TestSink(t *testing.T) { porttest.TestSink(t, harness) }

func TestBisect(t *testing.T) { porttest.TestBisect(t, harness) }

func harness(testing.TB) porttest.SinkHarness {
	s := inmem.NewSink()
	locks := &lockedLines{Sink: s, held: map[int64]chan struct{}{}}
	sink := &porttest.ReplyLoser{Sink: locks}
	return porttest.SinkHarness{
		Engine:   "in memory",
		Sink:     sink,
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
		Heartbeat: func(_ testing.TB, sysName string) (porttest.HeartbeatRow, bool) {
			row, ok := s.Heartbeats(sysName)
			return porttest.HeartbeatRow(row), ok
		},
		SetHeartbeat: func(_ testing.TB, sysName string, row porttest.HeartbeatRow) {
			s.SetHeartbeat(sysName, inmem.HeartbeatRow(row))
		},
		Refuse: func(_ testing.TB, value string) {
			s.Refuse(func(_ int64, _ invoice.Column, v invoice.Value) bool { return !v.Null && v.Text == value })
		},
		NotNull: func(testing.TB) func() {
			on := true
			s.Refuse(func(_ int64, c invoice.Column, v invoice.Value) bool {
				return on && v.Null && c.Name == "UPC_CD" && c.Table == invoice.Detail
			})
			return func() { on = false }
		},
		Narrow: func(_ testing.TB, to int) func() {
			on := true
			s.Refuse(func(_ int64, c invoice.Column, v invoice.Value) bool {
				return on && len(v.Text) > to && c.Name == porttest.NarrowedColumn && c.Table == invoice.Detail
			})
			return func() { on = false }
		},
		CountWrites: countWrites(s),
		Lock:        locks.lock, LockWait: lockWait, RowLocks: true,
		LoseReply: sink.LoseReply,
	}
}

// lockWait is how long a request waits for a line that is held.
const lockWait = 100 * time.Millisecond

// lockedLines stands for what the oracle itself never has: lines that somebody else's transaction holds.
type lockedLines struct {
	*inmem.Sink

	mu   sync.Mutex
	held map[int64]chan struct{} // closed when the line is free
}

func (l *lockedLines) lock(_ testing.TB, line int64) func() {
	l.mu.Lock()
	defer l.mu.Unlock()
	free := make(chan struct{})
	l.held[line] = free
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.held, line)
		close(free)
	}
}

// holder answers the channel of a held line among an item's lines; nil when all are free.
func (l *lockedLines) holder(items []writer.Item) chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, it := range items {
		for _, line := range append([]int64{it.Main}, it.Duplicates...) {
			if free, ok := l.held[line]; ok {
				return free
			}
		}
	}
	return nil
}

// Apply waits for held lines, each as long as a statement would.
func (l *lockedLines) Apply(ctx context.Context, items []writer.Item, mode writer.Mode, known breaker.Heartbeat) ([]writer.Outcome, error) {
	for free := l.holder(items); free != nil; free = l.holder(items) {
		select {
		case <-free:
		case <-ctx.Done():
			return l.Sink.Apply(ctx, items, mode, known)
		case <-time.After(lockWait):
			return nil, fault.New(fault.Contention, "inmem: test", "locked", "a line is held by somebody else")
		}
	}
	return l.Sink.Apply(ctx, items, mode, known)
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
