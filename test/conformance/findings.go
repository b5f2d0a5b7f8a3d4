package conformance

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/adopt"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/run"
)

// FindingsFixture has the port under test and the functions that TestFindings needs around it.
type FindingsFixture struct {
	// Findings are under test, of the environment "web" and empty. Other is that of "dev" in the same database.
	Findings, Other reconcile.Findings
	// AuditLog is that of "web".
	AuditLog ops.AuditLog
	// Now is the clock that its times come from, or one that is close to it.
	Now func() time.Time
	// Age moves the times of all findings and comparisons back, or the clock on.
	Age func(t testing.TB, d time.Duration)
	// Ledger is that of the database, without an adoption.
	Ledger adopt.Ledger
	// HideAudits takes the table of the audit log away until restore; nil where there is none.
	HideAudits func(t testing.TB) (restore func())
}

// findingsTest is a running case.
type findingsTest struct {
	*testing.T
	FindingsFixture
}

// TestFindings checks an implementation of reconcile.Findings against the port's contract. open makes a new, empty one
// per case.
func TestFindings(t *testing.T, open func(t testing.TB) FindingsFixture) {
	for _, c := range []struct {
		name string
		run  func(*findingsTest)
	}{
		{"a comparison comes back as it was begun and saved", comparisonSaved},
		{"a comparison is begun once, with its entry of the audit log", comparisonBegun},
		{"a comparison is begun once, at once", comparisonBegunAtOnce},
		{"a step is saved once", comparisonSteps},
		{"the oldest comes next, and the last that ended well is the last", comparisonOrder},
		{"a finding comes back as it was seen", findingsSeen},
		{"a known one keeps its first sight and stays sure", findingsStay},
		{"what is dropped is gone, and comes anew", findingsDropped},
		{"a class has a bounded number", findingsBound},
		{"a list goes on after any key", findingsPages},
		{"a list has what was asked for", findingsQueries},
		{"counts are of findings, not of suspects", findingsCounts},
		{"two environments in one database see only their own", findingsEnvironments},
		{"any letters, any line, and details that are too long", findingsOdd},
		{"the same step twice, at once", findingsTwice},
		{"when the ledger was adopted", findingsAdopted},
		{"a call whose context has ended is infrastructure", findingsCancelled},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(&findingsTest{T: t, FindingsFixture: open(t)}) })
	}
}

// seenAt makes a finding about a line.
func seenAt(class reconcile.Class, line int64, document, mark string) reconcile.Seen {
	return reconcile.Seen{
		Key: reconcile.Key{Class: class, Line: line, Document: document}, Mark: mark, Sure: true,
		Detail: fmt.Sprintf("%s of %d", class, line), Mends: true,
	}
}

// begun begins a comparison.
func begun(t testing.TB, s reconcile.Findings, c reconcile.Comparison) reconcile.Comparison {
	t.Helper()
	c.By, c.Why = "ann", "a test"
	began, err := s.Begin(t.Context(), c)
	require.NoError(t, err)
	require.True(t, began)
	return c
}

// save saves a step of the oldest comparison, which it begins if there is none.
func save(t testing.TB, s reconcile.Findings, put []reconcile.Seen, drop []reconcile.Key) {
	t.Helper()
	c, there, err := s.Next(t.Context())
	require.NoError(t, err)
	if !there {
		c = begun(t, s, reconcile.Comparison{ID: "c"})
	}
	require.NoError(t, s.Save(t.Context(), c, put, drop))
}

// end ends the comparison that comes next.
func end(t testing.TB, s reconcile.Findings, failed string) {
	t.Helper()
	c, there, err := s.Next(t.Context())
	require.NoError(t, err)
	require.True(t, there)
	c.Ended, c.Error = true, failed
	require.NoError(t, s.Save(t.Context(), c, nil, nil))
}

func (f *findingsTest) save(put []reconcile.Seen, drop ...reconcile.Key) {
	f.Helper()
	save(f, f.Findings, put, drop)
}

// next gives the comparison that comes next.
func (f *findingsTest) next() reconcile.Comparison {
	f.Helper()
	c, there, err := f.Findings.Next(f.Context())
	require.NoError(f, err)
	require.True(f, there)
	return c
}

func (f *findingsTest) list(q reconcile.Query) []reconcile.Finding {
	f.Helper()
	list, err := f.Findings.List(f.Context(), q, nil, 1000)
	require.NoError(f, err)
	return list
}

// one gives the only finding or suspect there is.
func (f *findingsTest) one() reconcile.Finding {
	f.Helper()
	list := f.list(reconcile.Query{Suspects: true})
	require.Len(f, list, 1)
	return list[0]
}

func (f *findingsTest) recent(at time.Time) {
	f.Helper()
	require.WithinDuration(f, f.Now(), at, time.Minute, "by the database's clock")
	require.Equal(f, time.UTC, at.Location())
}

func comparisonSaved(f *findingsTest) {
	_, there, err := f.Findings.Next(f.Context())
	require.NoError(f, err)
	require.False(f, there)
	ids := []string{"a", strings.Repeat("ä", 1000)}
	for range 500 {
		ids = append(ids, strings.Repeat("x", 900))
	}
	want := begun(f, f.Findings, reconcile.Comparison{ID: strings.Repeat("c", 64), IDs: ids, Whole: true, Night: true})
	c := f.next()
	f.recent(c.BegunAt)
	f.recent(c.MovedAt)
	f.recent(c.ReadAt)
	want.BegunAt, want.MovedAt, want.ReadAt, want.Counts = c.BegunAt, c.MovedAt, c.ReadAt, map[reconcile.Class]int{}
	require.Equal(f, want, c)
	f.Age(f, time.Hour)
	c.Position, c.Counts = strings.Repeat(`{"x":"ä"}`, 1000), map[reconcile.Class]int{reconcile.Stale: 3}
	require.NoError(f, f.Findings.Save(f.Context(), c, nil, nil))
	again := f.next()
	f.recent(again.MovedAt)
	require.WithinDuration(f, f.Now().Add(-time.Hour), again.BegunAt, time.Minute)
	f.recent(again.ReadAt)
	c.Step, c.MovedAt, c.BegunAt, c.ReadAt = 1, again.MovedAt, again.BegunAt, again.ReadAt
	require.Equal(f, c, again)
	end(f, f.Findings, "")
	_, there, err = f.Findings.Next(f.Context())
	require.NoError(f, err)
	require.False(f, there)
}

func comparisonBegunAtOnce(f *findingsTest) {
	began, errs := atOnce(8, func(int) (bool, error) {
		return f.Findings.Begin(f.Context(), reconcile.Comparison{ID: "2025-12-18", By: "ann", Why: "x"})
	})
	require.NoError(f, errors.Join(errs...))
	require.Len(f, slices.DeleteFunc(began, func(is bool) bool { return !is }), 1)
}

func comparisonBegun(f *findingsTest) {
	begun(f, f.Findings, reconcile.Comparison{ID: "2025-12-18", Night: true})
	for range 2 {
		began, err := f.Findings.Begin(f.Context(), reconcile.Comparison{ID: "2025-12-18", By: "another", Why: "y"})
		require.NoError(f, err)
		require.False(f, began)
		require.Equal(f, "ann", f.next().By)
	}
	audits := func() []run.Audit {
		list, err := f.AuditLog.Audits(f.Context(), ops.AuditQuery{All: true, Limit: 10})
		require.NoError(f, err)
		return list
	}
	require.Len(f, audits(), 1)
	require.Equal(f, []string{run.CodeCompare, "ann", "a test"},
		[]string{audits()[0].Action, audits()[0].By, audits()[0].Why})
	require.JSONEq(f, `{"comparison":"2025-12-18","documents":0,"whole":false}`, string(audits()[0].Detail))
	end(f, f.Findings, "")
	began, err := f.Findings.Begin(f.Context(), reconcile.Comparison{ID: "2025-12-18", By: "ann", Why: "x"})
	require.NoError(f, err)
	require.False(f, began, "it ended")
	if f.HideAudits != nil {
		restore := f.HideAudits(f)
		_, err := f.Findings.Begin(f.Context(), reconcile.Comparison{ID: "other", By: "ann", Why: "x"})
		restore()
		require.Equal(f, fault.Infrastructure, fault.KindOf(err))
		_, there, err := f.Findings.Next(f.Context())
		require.NoError(f, err)
		require.False(f, there, "nothing without its entry")
	}
}

func comparisonSteps(f *findingsTest) {
	begun(f, f.Findings, reconcile.Comparison{ID: "c"})
	lost := func(c reconcile.Comparison) {
		f.Helper()
		err := f.Findings.Save(f.Context(), c, []reconcile.Seen{seenAt(reconcile.Stale, 2, "a", "m")},
			[]reconcile.Key{{Class: reconcile.Stale, Line: 1, Document: "a"}})
		require.Equal(f, fault.Contention, fault.KindOf(err), "%v", err)
		require.True(f, fault.Has(err, fault.Changed))
	}
	first := f.next()
	f.save([]reconcile.Seen{seenAt(reconcile.Stale, 1, "a", "m")})
	lost(first)
	ahead := f.next()
	ahead.Step++
	lost(ahead)
	lost(reconcile.Comparison{ID: "unknown"})
	last := f.next()
	end(f, f.Findings, "")
	lost(last)
	last.Step++
	lost(last)
	require.Equal(f, int64(1), f.one().Line, "neither put nor dropped")
}

func comparisonOrder(f *findingsTest) {
	last := func() string {
		c, there, err := f.Findings.Last(f.Context())
		require.NoError(f, err)
		require.Equal(f, there, c.ID != "")
		return c.ID
	}
	begun(f, f.Other, reconcile.Comparison{ID: "z"})
	end(f, f.Other, "")
	begun(f, f.Other, reconcile.Comparison{ID: "theirs"})
	require.Empty(f, last())
	for _, c := range []struct {
		id, failed string
		ids        []string
		want       string
	}{
		{"z", "", nil, "z"},
		{"y", "", nil, "y"},
		{"x", "it is a mistake", nil, "y"},
		{"w", "", []string{"a"}, "y"},
		{"v", "", nil, "v"},
	} {
		begun(f, f.Findings, reconcile.Comparison{ID: c.id, IDs: c.ids})
		f.Age(f, time.Minute)
		begun(f, f.Findings, reconcile.Comparison{ID: "later-" + c.id})
		require.Equal(f, c.id, f.next().ID)
		end(f, f.Findings, c.failed)
		require.Equal(f, c.want, last())
		require.Equal(f, "later-"+c.id, f.next().ID)
		end(f, f.Findings, "for another test")
	}
	c, _, err := f.Findings.Last(f.Context())
	require.NoError(f, err)
	f.recent(c.EndedAt)
	require.True(f, c.Ended)
}

func findingsSeen(f *findingsTest) {
	require.Equal(f, []reconcile.Finding{}, f.list(reconcile.Query{}))
	seen := seenAt(reconcile.Stale, 7, "a document", "h1")
	f.save([]reconcile.Seen{seen})
	found := f.one()
	f.recent(found.FirstSeen)
	f.recent(found.LastSeen)
	require.Equal(f, reconcile.Finding{Seen: seen, FirstSeen: found.FirstSeen, LastSeen: found.LastSeen}, found)
	f.save(nil)
	f.save(
		[]reconcile.Seen{
			seenAt(reconcile.Stale, 7, "another document", "h1"), seenAt(reconcile.Edited, 7, "a document", "h1"),
			seenAt(reconcile.Stale, 8, "a document", "h1"),
		})
	require.Len(f, f.list(reconcile.Query{}), 4, "class, line and document make the key")
}

func findingsStay(f *findingsTest) {
	suspect := seenAt(reconcile.Edited, 7, "a", "h1")
	suspect.Sure = false
	f.save([]reconcile.Seen{suspect})
	require.Empty(f, f.list(reconcile.Query{}))
	require.Equal(f, suspect, f.one().Seen)
	f.Age(f, time.Hour)
	sure := suspect
	sure.Sure = true
	f.save([]reconcile.Seen{sure})
	f.Age(f, time.Hour)
	suspect.Mark, suspect.Detail, suspect.Mends = "h2", "two columns", false
	f.save([]reconcile.Seen{suspect})
	suspect.Sure = true
	found := f.one()
	require.WithinDuration(f, f.Now().Add(-2*time.Hour), found.FirstSeen, time.Minute)
	f.recent(found.LastSeen)
	require.Equal(f, suspect, found.Seen)
}

func findingsDropped(f *findingsTest) {
	a, b, c := seenAt(reconcile.Edited, 1, "a", "h"), seenAt(reconcile.Edited, 2, "a", "h"),
		seenAt(reconcile.Stale, 2, "a", "h")
	f.save([]reconcile.Seen{a, b, c})
	f.save(nil, a.Key, a.Key, c.Key, reconcile.Key{Class: reconcile.Edited, Line: 3, Document: "a"})
	require.Equal(f, b.Key, f.one().Key)
	f.Age(f, time.Hour)
	f.save([]reconcile.Seen{a})
	f.recent(f.list(reconcile.Query{Line: 1})[0].FirstSeen)
}

func findingsBound(f *findingsTest) {
	lines := func(from, to int64) (seen []reconcile.Seen) {
		for line := from; line < to; line++ {
			seen = append(seen, seenAt(reconcile.Stale, line, "a", "h"))
		}
		return seen
	}
	save(f, f.Other, lines(0, 100), nil)
	f.save(lines(0, reconcile.MaxFindings-60))
	f.save(append(lines(-10, 100), append(lines(20_000, 20_100), seenAt(reconcile.Edited, 1, "a", "h"))...))
	counts, err := f.Findings.Counts(f.Context())
	require.NoError(f, err)
	require.Equal(f, []int{1, reconcile.MaxFindings}, []int{counts[0].Findings, counts[1].Findings})
	require.Len(f, f.list(reconcile.Query{Line: 20_049}), 1, "the first of them in the order of their keys")
	require.Equal(f, map[reconcile.Class]int{reconcile.Stale: 50, reconcile.Unlisted: 50}, f.next().Counts,
		"those that have no room")
	require.Empty(f, f.list(reconcile.Query{Line: 20_050}))
	f.save(nil, lines(5, 6)[0].Key)
	f.save(lines(20_050, 20_052))
	require.Len(f, f.list(reconcile.Query{Line: 20_050}), 1)
	require.Empty(f, f.list(reconcile.Query{Line: 20_051}))
}

func findingsPages(f *findingsTest) {
	var seen []reconcile.Seen
	for _, class := range []reconcile.Class{reconcile.RowMissing, reconcile.Edited, reconcile.Stale} {
		for _, line := range []int64{0, -5, math.MaxInt64, 12} {
			for _, document := range []string{"", "a", "b", "c"} {
				seen = append(seen, seenAt(class, line, document, "h"))
			}
		}
	}
	f.save(seen)
	all := f.list(reconcile.Query{})
	require.Len(f, all, len(seen))
	for i, found := range all[1:] {
		require.Negative(f, all[i].Compare(found.Key))
	}
	for _, q := range []reconcile.Query{
		{}, {Suspects: true}, {Line: 12}, {Classes: []reconcile.Class{reconcile.Stale, reconcile.Edited}},
	} {
		all := f.list(q)
		for _, size := range []int{1, 3, 7} {
			var paged []reconcile.Finding
			after := (*reconcile.Key)(nil)
			for range len(seen) + 1 {
				page, err := f.Findings.List(f.Context(), q, after, size)
				require.NoError(f, err)
				if len(page) == 0 {
					break
				}
				require.LessOrEqual(f, len(page), size)
				paged, after = append(paged, page...), &page[len(page)-1].Key
			}
			require.Equal(f, all, paged, "%+v by %d", q, size)
		}
	}
	none, err := f.Findings.List(f.Context(), reconcile.Query{}, nil, 0)
	require.NoError(f, err)
	require.Empty(f, none)
	after, err := f.Findings.List(f.Context(), reconcile.Query{Line: 12},
		&reconcile.Key{Class: reconcile.RowMissing, Line: 13, Document: "x"}, 100)
	require.NoError(f, err)
	require.Len(f, after, 4, "only those of the class behind it")
	after, err = f.Findings.List(f.Context(), reconcile.Query{Line: 12},
		&reconcile.Key{Class: reconcile.Edited, Line: -5, Document: "x"}, 100)
	require.NoError(f, err)
	require.Len(f, after, 12)
}

func findingsQueries(f *findingsTest) {
	people, suspect := seenAt(reconcile.RowMissing, 1, "a", ""), seenAt(reconcile.Stale, 4, "b", "h")
	people.Mends, suspect.Sure = false, false
	tracking, stale, other := seenAt(reconcile.TrackingMissing, 2, "a", "h"), seenAt(reconcile.Stale, 2, "a", "h"),
		seenAt(reconcile.Stale, 3, "b", "h")
	f.save([]reconcile.Seen{people, tracking, stale, other, suspect})
	for _, c := range []struct {
		q    reconcile.Query
		want []reconcile.Seen
	}{
		{reconcile.Query{}, []reconcile.Seen{people, stale, other, tracking}},
		{reconcile.Query{Suspects: true}, []reconcile.Seen{people, stale, other, suspect, tracking}},
		{reconcile.Query{Mends: true}, []reconcile.Seen{stale, other, tracking}},
		{
			reconcile.Query{
				Classes: []reconcile.Class{reconcile.TrackingMissing, reconcile.RowMissing, reconcile.TrackingMissing},
			}, []reconcile.Seen{people, tracking},
		},
		{reconcile.Query{Classes: []reconcile.Class{"of a later build"}}, nil},
		{reconcile.Query{Line: 2}, []reconcile.Seen{stale, tracking}},
		{reconcile.Query{Line: 2, Classes: []reconcile.Class{reconcile.Stale}}, []reconcile.Seen{stale}},
	} {
		var found []reconcile.Seen
		for _, one := range f.list(c.q) {
			found = append(found, one.Seen)
		}
		require.Equal(f, c.want, found, "%+v", c.q)
	}
}

func findingsCounts(f *findingsTest) {
	counts, err := f.Findings.Counts(f.Context())
	require.NoError(f, err)
	require.Equal(f, []reconcile.Count{}, counts)
	suspect := seenAt(reconcile.RowMissing, 4, "a", "h")
	suspect.Sure = false
	f.save([]reconcile.Seen{seenAt(reconcile.Stale, 1, "a", "h"), suspect})
	f.Age(f, time.Hour)
	f.save([]reconcile.Seen{seenAt(reconcile.Stale, 2, "a", "h"), seenAt(reconcile.Edited, 3, "a", "h")})
	counts, err = f.Findings.Counts(f.Context())
	require.NoError(f, err)
	require.Len(f, counts, 2)
	require.Equal(f, []any{reconcile.Edited, 1, reconcile.Stale, 2},
		[]any{counts[0].Class, counts[0].Findings, counts[1].Class, counts[1].Findings})
	require.WithinDuration(f, f.Now().Add(-time.Hour), counts[1].First, time.Minute)
}

func findingsEnvironments(f *findingsTest) {
	seen, theirs := seenAt(reconcile.Edited, 7, "a", "h1"), seenAt(reconcile.Edited, 7, "a", "h2")
	f.save([]reconcile.Seen{seen})
	save(f, f.Other, []reconcile.Seen{theirs}, nil)
	require.Equal(f, seen, f.one().Seen)
	save(f, f.Other, nil, []reconcile.Key{seen.Key})
	require.Equal(f, seen, f.one().Seen)
	counts, err := f.Other.Counts(f.Context())
	require.NoError(f, err)
	require.Empty(f, counts)
	require.Equal(f, 1, f.next().Step)
}

func findingsOdd(f *findingsTest) {
	odd := "O'Neil \"x\" \\ %s @id; DROP TABLE run -- \u00e4\u6f22\U0001f600 \ttab "
	seen := seenAt(reconcile.Stale, math.MinInt64, odd, strings.Repeat("f", reconcile.MaxMark))
	seen.Detail = strings.Repeat(odd, 100)
	longest := seenAt(reconcile.Stale, math.MaxInt64, strings.Repeat("x", run.MaxSubject), "")
	longest.Detail = ""
	f.save([]reconcile.Seen{seen, longest})
	list := f.list(reconcile.Query{})
	seen.Detail = run.Truncate(seen.Detail, reconcile.MaxDetail)
	require.Equal(f, []reconcile.Seen{seen, longest}, []reconcile.Seen{list[0].Seen, list[1].Seen})
	other := seen
	other.Document = strings.ToUpper(odd)
	f.save([]reconcile.Seen{other})
	require.Len(f, f.list(reconcile.Query{}), 3, "ids are told apart by case")
	f.save(nil, seen.Key, longest.Key)
	require.Equal(f, other.Key, f.one().Key)
}

func findingsTwice(f *findingsTest) {
	var put []reconcile.Seen
	for line := range int64(150) {
		put = append(put, seenAt(reconcile.Stale, line, "a", "h"), seenAt(reconcile.Edited, line, "a", "h"))
	}
	f.save(append(put[:20:20], put[:20]...))
	var drop []reconcile.Key
	for _, s := range put[:10] {
		drop = append(drop, s.Key)
	}
	step := f.next()
	step.Counts = map[reconcile.Class]int{reconcile.Stale: 1}
	_, errs := atOnce(4, func(int) (bool, error) {
		for {
			err := f.Findings.Save(f.Context(), step, put[10:], drop)
			if fault.KindOf(err) != fault.Contention || fault.Has(err, fault.Changed) {
				return true, err
			}
		}
	})
	saved := 0
	for _, err := range errs {
		if err == nil {
			saved++
			continue
		}
		require.True(f, fault.Has(err, fault.Changed), "%v", errors.Join(errs[:]...))
	}
	require.Equal(f, 1, saved)
	require.Len(f, f.list(reconcile.Query{}), 290)
	require.Equal(f, step.Step+1, f.next().Step)
}

func findingsAdopted(f *findingsTest) {
	at, err := f.Findings.AdoptedAt(f.Context())
	require.NoError(f, err)
	require.True(f, at.IsZero())
	state, err := f.Ledger.Begin(f.Context(), adopt.State{}, "ann")
	require.NoError(f, err)
	at, err = f.Findings.AdoptedAt(f.Context())
	require.NoError(f, err)
	require.True(f, at.IsZero(), "it is not finished")
	_, err = f.Ledger.Finish(f.Context(), state.Run, 0)
	require.NoError(f, err)
	at, err = f.Findings.AdoptedAt(f.Context())
	require.NoError(f, err)
	require.WithinDuration(f, time.Now(), at, time.Minute)
	require.Equal(f, time.UTC, at.Location())
}

func findingsCancelled(f *findingsTest) {
	seen := seenAt(reconcile.Edited, 7, "a", "h1")
	f.save([]reconcile.Seen{seen})
	ctx, cancel := context.WithCancel(f.Context())
	going := f.next()
	cancel()
	for name, call := range map[string]func() error{
		"begin": func() error {
			_, err := f.Findings.Begin(ctx, reconcile.Comparison{ID: "x", By: "x", Why: "x"})
			return err
		},
		"next":   func() error { _, _, err := f.Findings.Next(ctx); return err },
		"last":   func() error { _, _, err := f.Findings.Last(ctx); return err },
		"save":   func() error { return f.Findings.Save(ctx, going, nil, []reconcile.Key{seen.Key}) },
		"list":   func() error { _, err := f.Findings.List(ctx, reconcile.Query{}, nil, 1); return err },
		"counts": func() error { _, err := f.Findings.Counts(ctx); return err },
		"adopt":  func() error { _, err := f.Findings.AdoptedAt(ctx); return err },
	} {
		err := call()
		require.Equal(f, fault.Infrastructure, fault.KindOf(err), "%s: %v", name, err)
		require.ErrorIs(f, err, context.Canceled, name)
	}
	require.Equal(f, seen, f.one().Seen)
	require.Equal(f, 1, f.next().Step)
}

// UseFindings makes every call of the port once.
func UseFindings(t testing.TB, s reconcile.Findings) {
	t.Helper()
	seen := []reconcile.Seen{seenAt(reconcile.Stale, 1, "a", "h"), seenAt(reconcile.Edited, 2, "a", "h")}
	save(t, s, seen, nil)
	save(t, s, seen[1:], []reconcile.Key{seen[0].Key})
	end(t, s, "")
	_, there, err := s.Last(t.Context())
	require.NoError(t, err)
	require.True(t, there)
	list, err := s.List(t.Context(), reconcile.Query{}, nil, 10)
	require.NoError(t, err)
	require.Len(t, list, 1)
	_, err = s.Counts(t.Context())
	require.NoError(t, err)
	_, err = s.AdoptedAt(t.Context())
	require.NoError(t, err)
}
