package inmem_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/test/conformance"
	"sqlwriter/test/inmem"
	"sqlwriter/test/mapping"
)

func TestSink(t *testing.T) { conformance.TestSink(t, harness) }

func TestBisect(t *testing.T) { conformance.TestBisect(t, harness) }

func TestRows(t *testing.T) { conformance.TestRows(t, harness) }

func harness(testing.TB) conformance.SinkHarness {
	s := inmem.NewSink()
	locks := &lockedLines{Sink: s, held: map[int64]chan struct{}{}}
	sink := &conformance.ReplyLoser{Sink: locks}
	return conformance.SinkHarness{
		Engine: "in memory",
		Sink:   sink, Rows: s.ReconcileRows,
		Under:    func(_ testing.TB, m *invoice.Mapping) conformance.Store { return s.Under(m) },
		AddLines: func(_ testing.TB, lines ...int64) { s.AddLines(lines...) },
		Row: func(_ testing.TB, line int64) conformance.SinkRow {
			l, ok := s.Line(line)
			if !ok {
				l.Values = nulls()
			}
			return conformance.SinkRow{Detail: ok, Tracking: l.Tracking, Values: l.Values}
		},
		SetRow: func(t testing.TB, line int64, r conformance.SinkRow) {
			require.True(t, r.Detail)
			s.SetLine(line, inmem.Line{Tracking: r.Tracking, Values: r.Values})
		},
		Ledger: func(_ testing.TB, line int64) (conformance.LedgerRow, bool) {
			e, ok := s.Entry(line)
			return conformance.LedgerRow{
				Version: e.Version, DocumentID: e.DocumentID, SourceTS: e.SourceTS, Hash: e.Hash,
				HashVersion: e.HashVersion, SysName: e.SysName, DetailHash: e.DetailHash,
				TrackingHash: e.TrackingHash, Outcome: e.Outcome,
			}, ok
		},
		SetLedger: func(_ testing.TB, line int64, l conformance.LedgerRow) {
			s.SetEntry(line, inmem.Entry{
				Version: l.Version, DocumentID: l.DocumentID, SourceTS: l.SourceTS, Hash: l.Hash,
				HashVersion: l.HashVersion, SysName: l.SysName, DetailHash: l.DetailHash,
				TrackingHash: l.TrackingHash, Outcome: l.Outcome,
				At: time.Now().AddDate(0, 0, -l.DaysAgo).Unix(),
			})
		},
		Heartbeat: func(_ testing.TB, sysName string) (conformance.HeartbeatRow, bool) {
			row, ok := s.Heartbeats(sysName)
			return conformance.HeartbeatRow(row), ok
		},
		SetHeartbeat: func(_ testing.TB, sysName string, row conformance.HeartbeatRow) {
			s.SetHeartbeat(sysName, inmem.HeartbeatRow(row))
		},
		Refuse: func(_ testing.TB, value string) {
			s.Refuse(func(_ int64, _ invoice.Column, v invoice.Value) bool { return !v.Null && v.Text == value })
		},
		NotNull: func(testing.TB) func() {
			on := true
			s.Refuse(func(_ int64, c invoice.Column, v invoice.Value) bool {
				return on && v.Null && c.Name == conformance.NotNullColumn().Name && c.Table == invoice.Detail
			})
			return func() { on = false }
		},
		Narrow: func(_ testing.TB, to int) func() {
			on, narrowed := true, conformance.NarrowedColumn().Name
			s.Refuse(func(_ int64, c invoice.Column, v invoice.Value) bool {
				return on && len(v.Text) > to && c.Name == narrowed && c.Table == invoice.Detail
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

// lockedLines simulates what the in-memory sink does not have: lines that another transaction has locked.
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
func (l *lockedLines) holder(items []commit.Item) chan struct{} {
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
func (l *lockedLines) Apply(
	ctx context.Context, items []commit.Item, mode commit.Mode, known breaker.Heartbeat,
) ([]commit.DocumentOutcome, error) {
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
			if c.Status { // one in each table
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
	values := make([]invoice.Value, len(mapping.InUse().Columns()))
	for i := range values {
		values[i] = invoice.Null()
	}
	return values
}
