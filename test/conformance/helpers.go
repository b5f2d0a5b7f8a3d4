package conformance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/test/mapping"
)

// doc makes an item with content of its own: two items have the same values exactly if content is the same.
func doc(id string, us, ts int64, content string, lines ...int64) commit.Item {
	return commit.Item{
		DocumentID: id, Version: invoice.Version{US: us, Key: invoice.Key(id)}, SourceTS: ts,
		Hash: invoice.Key(fmt.Sprint(content, lines)), HashVersion: mapping.InUse().Version(),
		Main: lines[0], Duplicates: lines[1:], Values: contentValues(content),
	}
}

// mark makes the failure mark of an item.
func mark(it commit.Item) commit.Item {
	it.FailureMark, it.Values = true, mapping.InUse().MarkValues()
	return it
}

// contentValues makes one value for each column that a document fills, all of them drawn from content.
func contentValues(content string) []invoice.Value {
	columns := mapping.InUse().Columns()
	values := make([]invoice.Value, len(columns))
	digits := invoice.Key(content) // hex
	for place, c := range columns {
		i := firstOf(place)
		values[place] = values[i]
		if i < place { // one value, two columns
			continue
		}
		values[i] = invoice.Null()
		if c.Source == invoice.FromMapping {
			values[i] = invoice.Of(c.Constant)
		}
		if c.Source != invoice.FromDocument && c.Source != invoice.FromRequestTime {
			continue
		}
		switch c.Kind {
		case invoice.Text:
			if len(c.Values) > 0 {
				values[i] = invoice.Of(c.Values[int(digits[i])%2]) // never the failure mark's
				continue
			}
			values[i] = invoice.Of((content + " " + digits)[:min(width(c), len(content)+9)])
		case invoice.Integer:
			values[i] = invoice.Of(fmt.Sprint(100 + int(digits[i])))
		case invoice.Decimal:
			values[i] = invoice.Of(fmt.Sprintf("0.%04d", 37*int(digits[i])%10000))
		case invoice.Flag:
			values[i] = invoice.Of(c.Flags[digits[i]%2])
		case invoice.Time:
			values[i] = invoice.Of(fmt.Sprintf("2025-12-17T16:30:15.%06dZ", 1000*i+int(digits[i])))
			if c.Local { // and what a datetime has
				values[i] = invoice.Of(fmt.Sprintf("2025-12-17T10:%02d:15.%02d0000", i, int(digits[i])%100))
			}
		}
	}
	return values
}

// firstOf is the place of the first column that takes the same value of a document as the column at a place.
func firstOf(place int) int {
	columns := mapping.InUse().Columns()
	return slices.IndexFunc(columns, func(c invoice.Column) bool {
		return c.SameValue(columns[place])
	})
}

// apply makes one request that must succeed.
func (s *sinkTest) apply(mode commit.Mode, items ...commit.Item) []commit.DocumentOutcome {
	s.Helper()
	out, err := s.h.Sink.Apply(s.Context(), items, mode, unknown(sysName))
	require.NoError(s, err)
	require.Len(s, out, len(items), "one outcome per item")
	for i, it := range items {
		o := out[i]
		require.Equal(s, it.DocumentID, o.DocumentID, "outcomes come in the order of the items")
		require.Len(s, o.Rows, it.Rows(), "one verdict per line")
		for j, line := range linesOf(it) {
			require.Equal(s, line, o.Rows[j].DetailID, "the main line first, then the duplicates in their order")
		}
	}
	return out
}

// gives makes one request in mode write and compares the outcomes with their short form: "applied(applied superseded)".
func (s *sinkTest) gives(item commit.Item, short string) commit.DocumentOutcome {
	s.Helper()
	return s.givesIn(commit.Write, []string{short}, item)[0]
}

func (s *sinkTest) givesIn(mode commit.Mode, short []string, items ...commit.Item) []commit.DocumentOutcome {
	s.Helper()
	out := s.apply(mode, items...)
	found := make([]string, 0, len(out))
	for _, o := range out {
		found = append(found, inShort(o))
	}
	require.Equal(s, short, found)
	return out
}

// inShort writes an outcome as "verdict(verdict of each line)"; a line without a verdict (its document was left out
// whole) is "-".
func inShort(o commit.DocumentOutcome) string {
	rows := make([]string, 0, len(o.Rows))
	for _, r := range o.Rows {
		if r.Verdict == "" {
			r.Verdict = "-"
		}
		rows = append(rows, string(r.Verdict))
	}
	return fmt.Sprintf("%s(%s)", o.Verdict, strings.Join(rows, " "))
}

// holds requires that a line and the ledger have the content of an item.
func (s *sinkTest) holds(it commit.Item, lines ...int64) {
	s.Helper()
	if len(lines) == 0 {
		lines = linesOf(it)
	}
	for _, line := range lines {
		want := SinkRow{Detail: true, Tracking: true, Values: mapping.InUse().RowValues(it.Values, it.Main, line)}
		require.Equal(s, want, s.h.Row(s, line), "line %d, of %s", line, it.DocumentID)
		l, ok := s.h.Ledger(s, line)
		require.True(s, ok, "line %d is in the ledger", line)
		require.Equal(s, ledgerOf(it, line), l, "ledger of line %d", line)
	}
}

// ledgerOf is the ledger's row for a line that an item was written to.
func ledgerOf(it commit.Item, line int64) LedgerRow {
	if it.FailureMark {
		return LedgerRow{
			Version: it.Version, DocumentID: it.DocumentID, SysName: sysName, SourceTS: it.SourceTS, Outcome: "failed",
		}
	}
	detail, tracking := mapping.InUse().RowHashes(mapping.InUse().RowValues(it.Values, it.Main, line))
	return LedgerRow{
		Version: it.Version, DocumentID: it.DocumentID, SysName: sysName, SourceTS: it.SourceTS, Hash: it.Hash,
		HashVersion: it.HashVersion,
		DetailHash:  detail, TrackingHash: tracking, Outcome: "applied",
	}
}

// lineState is everything that the database says of a line.
type lineState struct {
	Row      SinkRow
	Ledger   LedgerRow
	InLedger bool
}

// state reads lines as they are.
func (s *sinkTest) state(lines ...int64) map[int64]lineState {
	s.Helper()
	out := map[int64]lineState{}
	for _, line := range lines {
		l, ok := s.h.Ledger(s, line)
		out[line] = lineState{Row: s.h.Row(s, line), Ledger: l, InLedger: ok}
	}
	return out
}

// edit is a person's correction of one text column of a line, in IVCE_DTL.
func (s *sinkTest) edit(line int64) SinkRow {
	s.Helper()
	r := s.h.Row(s, line)
	r.Values = slices.Clone(r.Values)
	r.Values[0] = invoice.Of("a person's text")
	s.h.SetRow(s, line, r)
	return r
}

// fails makes one request that must fail.
func (s *sinkTest) fails(kind fault.Kind, mode commit.Mode, items ...commit.Item) {
	s.Helper()
	_ = s.failure(kind, mode, items...) // its kind has been looked at
}

// failure makes one request that must fail, and answers how.
func (s *sinkTest) failure(kind fault.Kind, mode commit.Mode, items ...commit.Item) error {
	s.Helper()
	out, err := s.h.Sink.Apply(s.Context(), items, mode, unknown(sysName))
	require.Error(s, err)
	require.Nil(s, out, "no outcomes with an error")
	require.Equal(s, kind, fault.KindOf(err), "%v", err)
	return err
}

// linesOf lists an item's lines.
func linesOf(it commit.Item) []int64 { return append([]int64{it.Main}, it.Duplicates...) }

// span lists n lines from a first one.
func span(first int64, n int) []int64 {
	lines := make([]int64, n)
	for i := range lines {
		lines[i] = first + int64(i)
	}
	return lines
}

// atOnce calls f n times at once.
func atOnce[T any](n int, f func(i int) (T, error)) ([]T, []error) {
	answers, errs := make([]T, n), make([]error, n)
	var group sync.WaitGroup
	begin := make(chan struct{})
	for i := range n {
		group.Go(func() {
			<-begin
			answers[i], errs[i] = f(i)
		})
	}
	close(begin)
	group.Wait()
	return answers, errs
}

// oneWins requires that exactly one call has no error. The others are contention, with a condition if one is given.
func oneWins(t testing.TB, errs []error, condition fault.Condition) int {
	t.Helper()
	winner := -1
	for i, err := range errs {
		if err == nil {
			require.Negative(t, winner, "two of them won")
			winner = i
			continue
		}
		require.Equal(t, fault.Contention, fault.KindOf(err), "%v", err)
		require.True(t, condition == fault.NoCondition || fault.Has(err, condition), "%v", err)
	}
	require.GreaterOrEqual(t, winner, 0, "none of them won: %v", errs)
	return winner
}

// lateContext is a context that has ended.
func lateContext(t testing.TB) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
