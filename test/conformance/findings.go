package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/adopt"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/run"
)

// FindingsStore is what an adapter implements.
type FindingsStore interface {
	reconcile.Findings
	reconcile.Accepter
}

// FindingsFixture has the ports under test and the functions that TestFindings needs around them.
type FindingsFixture struct {
	// Findings are under test, of the environment "web" and empty. Other is that of "dev" in the same database.
	Findings, Other FindingsStore
	// Runs is the run store of the same environment and database, OtherRuns that of "dev". AuditLog is that of "web".
	Runs, OtherRuns run.Store
	AuditLog        ops.AuditLog
	// Now is the clock that its times come from, or one that is close to it.
	Now func() time.Time
	// Age moves the times of all findings back, or the clock on.
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

// TestFindings checks an implementation of reconcile.Findings and reconcile.Accepter against the ports' contracts. open makes a new,
// empty one per case.
func TestFindings(t *testing.T, open func(t testing.TB) FindingsFixture) {
	for _, c := range []struct {
		name string
		run  func(*findingsTest)
	}{
		{"a finding comes back as it was seen", findingsOpen},
		{"one that stays open keeps the time of its first sight", findingsStay},
		{"one that is found again after it was gone begins anew", findingsAnew},
		{"what the same run saw does not become gone", findingsGone},
		{"an accepted one stays so until its rows change", findingsAccepted},
		{"an acceptance is whole, with its entry, or nothing", findingsAcceptedWhole},
		{"a class has a bounded number of open ones", findingsBound},
		{"a run that mends is named once", findingsQueued},
		{"a list goes on after any key", findingsPages},
		{"a list has what was asked for", findingsQueries},
		{"counts are of open and accepted ones", findingsCounts},
		{"two environments in one database see only their own", findingsEnvironments},
		{"any letters, any line, and details that are too long", findingsOdd},
		{"the same step twice, at once and again", findingsTwice},
		{"the last completed run of a kind", findingsLastCompleted},
		{"which run waits", findingsWaits},
		{"when the ledger was adopted", findingsAdopted},
		{"a call whose context has ended is infrastructure", findingsCancelled},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(&findingsTest{T: t, FindingsFixture: open(t)}) })
	}
}

// seenAt makes a finding about a line.
func seenAt(class reconcile.Class, line int64, document, hash string) reconcile.Seen {
	return reconcile.Seen{
		Key: reconcile.Key{Class: class, Line: line, Document: document}, RowHash: hash, Detail: fmt.Sprintf("%s of %d", class, line), Mend: reconcile.WithWrite,
	}
}

// save saves, and requires how many were opened and became gone.
func (f *findingsTest) save(runID string, seen []reconcile.Seen, gone []reconcile.Key, opened, closed int) {
	f.Helper()
	o, c, err := f.Findings.Save(f.Context(), runID, seen, gone)
	require.NoError(f, err)
	require.Equal(f, []int{opened, closed}, []int{o, c}, "opened and closed")
}

func (f *findingsTest) list(q reconcile.Query) []reconcile.Finding {
	f.Helper()
	list, err := f.Findings.List(f.Context(), q, nil, 1000)
	require.NoError(f, err)
	return list
}

// one gives the only finding there is.
func (f *findingsTest) one() reconcile.Finding {
	f.Helper()
	list := f.list(reconcile.Query{})
	require.Len(f, list, 1)
	return list[0]
}

func (f *findingsTest) recent(at time.Time) {
	f.Helper()
	require.WithinDuration(f, f.Now(), at, time.Minute, "by the database's clock")
	require.Equal(f, time.UTC, at.Location())
}

// accepts is an entry of the audit log.
func accepts() run.Audit {
	return run.Audit{Code: run.CodeFindingAccept, Level: run.LevelInfo, By: "ann", Why: "it was agreed", Detail: json.RawMessage(`{"n":1}`)}
}

func findingsOpen(f *findingsTest) {
	require.Equal(f, []reconcile.Finding{}, f.list(reconcile.Query{}))
	seen := seenAt(reconcile.Stale, 7, "a document", "h1")
	f.save("r1", []reconcile.Seen{seen}, nil, 1, 0)
	found := f.one()
	f.recent(found.FirstSeen)
	f.recent(found.LastSeen)
	require.Equal(f, reconcile.Finding{Seen: seen, State: reconcile.Open, FirstSeen: found.FirstSeen, LastSeen: found.LastSeen, Run: "r1"}, found)
	f.save("r1", nil, nil, 0, 0)
	f.save("r1", []reconcile.Seen{seenAt(reconcile.Stale, 7, "another document", "h1"), seenAt(reconcile.Edited, 7, "a document", "h1"), seenAt(reconcile.Stale, 8, "a document", "h1")}, nil, 3, 0)
	require.Len(f, f.list(reconcile.Query{}), 4, "class, line and document make the key")
}

func findingsStay(f *findingsTest) {
	f.save("r1", []reconcile.Seen{seenAt(reconcile.Edited, 7, "a", "h1")}, nil, 1, 0)
	require.NoError(f, f.Findings.MarkQueued(f.Context(), "m1", []reconcile.Key{f.one().Key}))
	f.Age(f, time.Hour)
	again := seenAt(reconcile.Edited, 7, "a", "h2")
	again.Detail, again.Mend = "two columns", reconcile.ByPeople
	f.save("r2", []reconcile.Seen{again}, nil, 0, 0)
	found := f.one()
	require.WithinDuration(f, f.Now().Add(-time.Hour), found.FirstSeen, time.Minute)
	f.recent(found.LastSeen)
	require.Equal(f, reconcile.Finding{
		Seen: again, State: reconcile.Open, FirstSeen: found.FirstSeen, LastSeen: found.LastSeen, Run: "r2", QueuedBy: "m1",
	}, found)
}

func findingsAnew(f *findingsTest) {
	seen := seenAt(reconcile.Edited, 7, "a", "h1")
	f.save("r1", []reconcile.Seen{seen}, nil, 1, 0)
	require.NoError(f, f.Findings.MarkQueued(f.Context(), "m1", []reconcile.Key{seen.Key}))
	f.save("r2", nil, []reconcile.Key{seen.Key}, 0, 1)
	require.Equal(f, []any{reconcile.Gone, "r2", "m1"}, []any{f.one().State, f.one().Run, f.one().QueuedBy})
	f.Age(f, time.Hour)
	f.save("r3", []reconcile.Seen{seen}, nil, 1, 0)
	found := f.one()
	f.recent(found.FirstSeen)
	f.recent(found.LastSeen)
	require.Equal(f, []any{reconcile.Open, "r3", ""}, []any{found.State, found.Run, found.QueuedBy})
}

func findingsGone(f *findingsTest) {
	a, b, c := seenAt(reconcile.Edited, 1, "a", "h"), seenAt(reconcile.Edited, 2, "a", "h"), seenAt(reconcile.Stale, 2, "a", "h")
	f.save("r1", []reconcile.Seen{a, b, c}, nil, 3, 0)
	unknown := reconcile.Key{Class: reconcile.Edited, Line: 3, Document: "a"}
	f.save("r2", []reconcile.Seen{b}, []reconcile.Key{a.Key, a.Key, b.Key, unknown}, 0, 1)
	list := f.list(reconcile.Query{})
	require.Equal(f, []reconcile.State{reconcile.Gone, reconcile.Open, reconcile.Open}, []reconcile.State{list[0].State, list[1].State, list[2].State})
	f.save("r2", nil, []reconcile.Key{a.Key, b.Key}, 0, 1)
	f.save("r3", nil, []reconcile.Key{a.Key}, 0, 0)
	require.NoError(f, f.Findings.Accept(f.Context(), []reconcile.Key{c.Key}, accepts()))
	f.save("r3", nil, []reconcile.Key{c.Key}, 0, 1)
	require.Len(f, f.list(reconcile.Query{State: reconcile.Gone}), 2)
	f.save("r4", nil, []reconcile.Key{b.Key, c.Key}, 0, 1)
}

func findingsAccepted(f *findingsTest) {
	seen := seenAt(reconcile.Edited, 7, "a", "h1")
	f.save("r1", []reconcile.Seen{seen}, nil, 1, 0)
	require.NoError(f, f.Findings.Accept(f.Context(), []reconcile.Key{seen.Key, seen.Key}, accepts()))
	found := f.one()
	require.Equal(f, []any{reconcile.Accepted, "h1", "ann", "it was agreed", "r1"}, []any{found.State, found.AcceptedHash, found.By, found.Why, found.Run})
	audits, err := f.AuditLog.Audits(f.Context(), ops.AuditQuery{Action: run.CodeFindingAccept, Limit: 10})
	require.NoError(f, err)
	require.Len(f, audits, 1)
	require.Equal(f, []any{"ann", "it was agreed", `{"n":1}`, true}, []any{audits[0].By, audits[0].Why, string(audits[0].Detail), audits[0].Notable()})

	f.Age(f, time.Hour)
	seen.Detail = "the words may change"
	f.save("r2", []reconcile.Seen{seen}, nil, 0, 0)
	found = f.one()
	require.Equal(f, []any{reconcile.Accepted, "r2", seen.Detail}, []any{found.State, found.Run, found.Detail})
	f.recent(found.LastSeen)
	seen.RowHash = "h2"
	f.save("r3", []reconcile.Seen{seen}, nil, 1, 0)
	found = f.one()
	require.Equal(f, []any{reconcile.Open, "h2", "h1", "ann"}, []any{found.State, found.RowHash, found.AcceptedHash, found.By})
	f.recent(found.FirstSeen)

	a := accepts()
	a.Why = "again"
	for range 2 { // an accepted one may get another reason
		require.NoError(f, f.Findings.Accept(f.Context(), []reconcile.Key{seen.Key}, a))
		found = f.one()
		require.Equal(f, []any{reconcile.Accepted, "h2", "again"}, []any{found.State, found.AcceptedHash, found.Why})
		a.Why = "again"
	}
	none := seenAt(reconcile.RowMissing, 8, "a", "")
	f.save("r4", []reconcile.Seen{none}, nil, 1, 0)
	require.NoError(f, f.Findings.Accept(f.Context(), []reconcile.Key{none.Key}, a))
	f.save("r5", []reconcile.Seen{none}, nil, 0, 0)
	none.RowHash = "there again"
	f.save("r5", []reconcile.Seen{none}, nil, 1, 0)
}

func findingsAcceptedWhole(f *findingsTest) {
	a, b := seenAt(reconcile.Edited, 1, "a", "h"), seenAt(reconcile.Edited, 2, "a", "h")
	f.save("r1", []reconcile.Seen{a, b}, nil, 2, 0)
	f.save("r1", nil, nil, 0, 0)
	f.save("r2", nil, []reconcile.Key{b.Key}, 0, 1)
	unchanged := f.list(reconcile.Query{})
	require.NoError(f, f.Findings.Accept(f.Context(), nil, accepts()))
	for name, keys := range map[string][]reconcile.Key{"gone": {a.Key, b.Key}, "unknown": {a.Key, {Class: reconcile.Stale, Line: 1, Document: "a"}}} {
		err := f.Findings.Accept(f.Context(), keys, accepts())
		require.Equal(f, fault.Contention, fault.KindOf(err), "%s: %v", name, err)
		require.True(f, fault.Has(err, fault.Changed), name)
	}
	bad := accepts()
	bad.Detail = json.RawMessage(`{`)
	require.Equal(f, fault.Internal, fault.KindOf(f.Findings.Accept(f.Context(), []reconcile.Key{a.Key}, bad)))
	if f.HideAudits != nil {
		restore := f.HideAudits(f)
		err := f.Findings.Accept(f.Context(), []reconcile.Key{a.Key}, accepts())
		restore()
		require.Equal(f, fault.Infrastructure, fault.KindOf(err))
	}
	require.Equal(f, unchanged, f.list(reconcile.Query{}))
	audits, err := f.AuditLog.Audits(f.Context(), ops.AuditQuery{All: true, Limit: 10})
	require.NoError(f, err)
	require.Empty(f, audits)

	long := accepts()
	long.By, long.Why = strings.Repeat("ä", 300), strings.Repeat("ä", 3000)
	require.NoError(f, f.Findings.Accept(f.Context(), []reconcile.Key{a.Key}, long))
	found := f.list(reconcile.Query{State: reconcile.Accepted})[0]
	require.Equal(f, []string{ops.Truncate(long.By, ops.MaxBy), ops.Truncate(long.Why, ops.MaxWhy)}, []string{found.By, found.Why})
}

func findingsBound(f *findingsTest) {
	lines := func(from, to int64, hash string) (seen []reconcile.Seen) {
		for line := from; line < to; line++ {
			seen = append(seen, seenAt(reconcile.Stale, line, "a", hash))
		}
		return seen
	}
	_, _, err := f.Other.Save(f.Context(), "r1", lines(0, 100, "h"), nil)
	require.NoError(f, err)
	const room = 60
	known := lines(0, reconcile.MaxOpen-room, "h")
	f.save("r1", known, nil, len(known), 0)
	f.save("r2", lines(-20, 0, "h"), nil, 20, 0)
	f.save("r3", nil, []reconcile.Key{{Class: reconcile.Stale, Line: -1, Document: "a"}, {Class: reconcile.Stale, Line: -2, Document: "a"}}, 0, 2)
	var accepted []reconcile.Key
	for _, s := range lines(-20, -10, "h") {
		accepted = append(accepted, s.Key)
	}
	require.NoError(f, f.Findings.Accept(f.Context(), accepted, accepts()))
	// 8 are open, 2 were gone and 10 are accepted. Two of the accepted changed. So 52 have room, behind the 4 that are there already.
	many := append(lines(-20, -18, "changed"), lines(-18, 100, "h")...)
	for i := range int64(200) {
		many = append(many, seenAt(reconcile.Stale, reconcile.MaxOpen+i, "a", "h"))
	}
	many = append(many, seenAt(reconcile.Edited, 1, "a", "h"))
	f.save("r4", many, nil, 2+2+room-8-4+1, 0)
	counts, err := f.Findings.Counts(f.Context())
	require.NoError(f, err)
	require.Equal(f, []int{1, reconcile.MaxOpen, 8}, []int{counts[0].Open, counts[1].Open, counts[1].Accepted})

	full := append(lines(-18, -17, "changed"), lines(20_000, 20_003, "h")...)
	f.save("r5", full, []reconcile.Key{{Class: reconcile.Stale, Line: 5, Document: "a"}, {Class: reconcile.Stale, Line: 6, Document: "a"}}, 0, 2)
	kept := f.list(reconcile.Query{Line: -18})[0]
	require.Equal(f, []any{reconcile.Accepted, "changed", "h"}, []any{kept.State, kept.RowHash, kept.AcceptedHash})
	f.save("r6", full, nil, 2, 0)
	require.Equal(f, reconcile.Open, f.list(reconcile.Query{Line: -18})[0].State, "the first of them in the order of their keys")
	require.Len(f, f.list(reconcile.Query{Line: 20_000}), 1)
	require.Empty(f, f.list(reconcile.Query{Line: 20_001}))
	gone := f.list(reconcile.Query{Line: 5})[0]
	f.save("r7", lines(5, 6, "h"), nil, 0, 0)
	require.Equal(f, gone, f.list(reconcile.Query{Line: 5})[0], "what is not opened stays as it was")
}

func findingsQueued(f *findingsTest) {
	var seen []reconcile.Seen
	var keys []reconcile.Key
	for line := range int64(5) {
		seen = append(seen, seenAt(reconcile.Stale, line+1, "a", "h"))
		keys = append(keys, seen[line].Key)
	}
	f.save("r1", seen, nil, 5, 0)
	require.NoError(f, f.Findings.Accept(f.Context(), keys[1:2], accepts()))
	f.save("r2", nil, keys[2:3], 0, 1)
	require.NoError(f, f.Findings.MarkQueued(f.Context(), "m1", keys[:4]))
	require.NoError(f, f.Findings.MarkQueued(f.Context(), "m2", append(keys[:5:5], reconcile.Key{Class: reconcile.Edited, Line: 1})))
	var by []string
	for _, found := range f.list(reconcile.Query{}) {
		by = append(by, found.QueuedBy)
	}
	require.Equal(f, []string{"m1", "", "", "m1", "m2"}, by)
	require.Len(f, f.list(reconcile.Query{}), 5)
}

func findingsPages(f *findingsTest) {
	var seen []reconcile.Seen
	for _, class := range []reconcile.Class{reconcile.LeftBehind, reconcile.Edited, reconcile.Stale} {
		for _, line := range []int64{0, -5, math.MaxInt64, 12} {
			for _, document := range []string{"", "a", "b", "c"} {
				seen = append(seen, seenAt(class, line, document, "h"))
			}
		}
	}
	f.save("r1", seen, nil, len(seen), 0)
	all := f.list(reconcile.Query{})
	require.Len(f, all, len(seen))
	for i, found := range all[1:] {
		a, b := all[i].Key, found.Key
		require.True(f, a.Class < b.Class || a.Class == b.Class && (a.Line < b.Line || a.Line == b.Line && run.DocumentKey(a.Document) < run.DocumentKey(b.Document)),
			"%v comes before %v", a, b)
	}
	for _, q := range []reconcile.Query{{}, {State: reconcile.Open}, {Line: 12}, {Classes: []reconcile.Class{reconcile.Stale, reconcile.Edited}}} {
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
	after, err := f.Findings.List(f.Context(), reconcile.Query{Line: 12}, &reconcile.Key{Class: reconcile.LeftBehind, Line: 13, Document: "x"}, 100)
	require.NoError(f, err)
	require.Len(f, after, 4, "only those of the class behind it")
	after, err = f.Findings.List(f.Context(), reconcile.Query{Line: 12}, &reconcile.Key{Class: reconcile.Edited, Line: -5, Document: "x"}, 100)
	require.NoError(f, err)
	require.Len(f, after, 12)
}

func findingsQueries(f *findingsTest) {
	people := seenAt(reconcile.RowMissing, 1, "a", "")
	people.Mend = reconcile.ByPeople
	rewrite := seenAt(reconcile.TrackingMissing, 2, "a", "h")
	rewrite.Mend = reconcile.WithRewrite
	stale, other, gone := seenAt(reconcile.Stale, 2, "a", "h"), seenAt(reconcile.Stale, 3, "b", "h"), seenAt(reconcile.Stale, 4, "b", "h")
	f.save("r1", []reconcile.Seen{people, rewrite, stale, other, gone}, nil, 5, 0)
	f.save("r2", []reconcile.Seen{stale}, []reconcile.Key{gone.Key}, 0, 1)
	require.NoError(f, f.Findings.MarkQueued(f.Context(), "m1", []reconcile.Key{other.Key}))
	require.NoError(f, f.Findings.Accept(f.Context(), []reconcile.Key{people.Key}, accepts()))
	for _, c := range []struct {
		q    reconcile.Query
		want []reconcile.Seen
	}{
		{reconcile.Query{}, []reconcile.Seen{people, stale, other, gone, rewrite}},
		{reconcile.Query{State: reconcile.Open}, []reconcile.Seen{stale, other, rewrite}},
		{reconcile.Query{State: reconcile.Accepted}, []reconcile.Seen{people}},
		{reconcile.Query{State: reconcile.Gone}, []reconcile.Seen{gone}},
		{reconcile.Query{Classes: []reconcile.Class{reconcile.TrackingMissing, reconcile.RowMissing, reconcile.TrackingMissing}}, []reconcile.Seen{people, rewrite}},
		{reconcile.Query{Classes: []reconcile.Class{"of a later build"}}, nil},
		{reconcile.Query{Line: 2}, []reconcile.Seen{stale, rewrite}},
		{reconcile.Query{Line: 2, Classes: []reconcile.Class{reconcile.Stale}}, []reconcile.Seen{stale}},
		{reconcile.Query{State: reconcile.Open, Unqueued: true}, []reconcile.Seen{stale, rewrite}},
		{reconcile.Query{Mend: reconcile.WithRewrite}, []reconcile.Seen{rewrite}},
		{reconcile.Query{Mend: reconcile.WithWrite, State: reconcile.Open}, []reconcile.Seen{stale, other}},
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
	a, b, c := seenAt(reconcile.Stale, 1, "a", "h"), seenAt(reconcile.Stale, 2, "a", "h"), seenAt(reconcile.Edited, 3, "a", "h")
	gone := seenAt(reconcile.RowMissing, 4, "a", "h")
	f.save("r1", []reconcile.Seen{a, c, gone}, nil, 3, 0)
	require.NoError(f, f.Findings.Accept(f.Context(), []reconcile.Key{c.Key}, accepts()))
	f.Age(f, time.Hour)
	f.save("r2", []reconcile.Seen{b}, []reconcile.Key{gone.Key}, 1, 1)
	counts, err = f.Findings.Counts(f.Context())
	require.NoError(f, err)
	require.Len(f, counts, 2)
	require.Equal(f, reconcile.Count{Class: reconcile.Edited, Accepted: 1}, counts[0])
	require.WithinDuration(f, f.Now().Add(-time.Hour), counts[1].First, time.Minute)
	counts[1].First = time.Time{}
	require.Equal(f, reconcile.Count{Class: reconcile.Stale, Open: 2}, counts[1])
}

func findingsEnvironments(f *findingsTest) {
	seen := seenAt(reconcile.Edited, 7, "a", "h1")
	f.save("r1", []reconcile.Seen{seen}, nil, 1, 0)
	require.Error(f, f.Other.Accept(f.Context(), []reconcile.Key{seen.Key}, accepts()))
	require.NoError(f, f.Other.MarkQueued(f.Context(), "m1", []reconcile.Key{seen.Key}))
	opened, closed, err := f.Other.Save(f.Context(), "r2", nil, []reconcile.Key{seen.Key})
	require.NoError(f, err)
	require.Equal(f, []int{0, 0}, []int{opened, closed})
	theirs := seenAt(reconcile.Edited, 7, "a", "h2")
	opened, _, err = f.Other.Save(f.Context(), "r2", []reconcile.Seen{theirs}, nil)
	require.NoError(f, err)
	require.Equal(f, 1, opened)
	found := f.one()
	require.Equal(f, []any{seen, reconcile.Open, "r1", ""}, []any{found.Seen, found.State, found.Run, found.QueuedBy})
	counts, err := f.Other.Counts(f.Context())
	require.NoError(f, err)
	require.Len(f, counts, 1)
	require.Equal(f, 1, counts[0].Open)
}

func findingsOdd(f *findingsTest) {
	odd := "O'Neil \"x\" \\ %s @id; DROP TABLE run -- \u00e4\u6f22\U0001f600 \ttab "
	seen := seenAt(reconcile.LeftBehind, math.MinInt64, odd, strings.Repeat("f", reconcile.MaxRowHash))
	seen.Detail = strings.Repeat(odd, 100)
	longest := seenAt(reconcile.LeftBehind, math.MaxInt64, strings.Repeat("x", ops.MaxSubject), "")
	longest.Detail = ""
	f.save(strings.Repeat("r", ops.MaxRunID), []reconcile.Seen{seen, longest}, nil, 2, 0)
	list := f.list(reconcile.Query{})
	seen.Detail = ops.Truncate(seen.Detail, reconcile.MaxDetail)
	require.Equal(f, []reconcile.Seen{seen, longest}, []reconcile.Seen{list[0].Seen, list[1].Seen})
	other := seen
	other.Document = strings.ToUpper(odd)
	f.save("r2", []reconcile.Seen{other}, nil, 1, 0) // ids are told apart by case
	f.save("r3", nil, []reconcile.Key{seen.Key, longest.Key}, 0, 2)
}

func findingsTwice(f *findingsTest) {
	var seen []reconcile.Seen
	var gone []reconcile.Key
	for line := range int64(150) {
		seen = append(seen, seenAt(reconcile.Stale, line, "a", "h"), seenAt(reconcile.Edited, line, "a", "h"))
	}
	f.save("r1", append(seen[:20:20], seen[:20]...), nil, 20, 0)
	for _, s := range seen[:10] {
		gone = append(gone, s.Key)
	}
	var group sync.WaitGroup
	var errs [4]error
	for i := range errs {
		group.Go(func() {
			for {
				_, _, errs[i] = f.Findings.Save(f.Context(), "r2", seen[10:], gone)
				if fault.KindOf(errs[i]) != fault.Contention {
					return
				}
			}
		})
	}
	group.Wait()
	require.NoError(f, errors.Join(errs[:]...))
	f.save("r2", seen[10:], gone, 0, 10)
	require.Len(f, f.list(reconcile.Query{State: reconcile.Open}), 290)
	require.Len(f, f.list(reconcile.Query{}), 300)
}

// begin starts a run of a kind.
func (f *findingsTest) begin(id string, kind run.Kind, filter string) run.Run {
	f.Helper()
	return f.beginIn(f.Runs, runSys, id, kind, filter)
}

func (f *findingsTest) beginIn(store run.Store, sysName, id string, kind run.Kind, filter string) run.Run {
	f.Helper()
	require.NoError(f, store.StartRun(f.Context(), run.Run{ID: id, SysName: sysName, Kind: kind, Pattern: run.TwoPhase, Filter: json.RawMessage(filter)}, entry(run.CodeRunStart)))
	r, ok, err := store.Run(f.Context(), id)
	require.NoError(f, err)
	require.True(f, ok)
	return r
}

// complete ends a run, as failed if failed is not 0.
func (f *findingsTest) complete(store run.Store, id string, failed int) {
	f.Helper()
	r, ok, err := store.ClaimRun(f.Context(), id, 0, noEpoch, run.Worker{ID: "manager of " + id, Instance: "i"}, runStale)
	require.NoError(f, err)
	require.True(f, ok)
	lease := run.RunLease{Run: id, Owner: r.Owner, Epoch: r.Epoch}
	require.NoError(f, store.SavePass(f.Context(), lease, run.Progress{Counts: map[string]int{string(run.DocFailed): failed}}))
	require.NoError(f, store.EndHandOff(f.Context(), lease, entry("HANDED_OFF")))
	ended, err := store.CompleteRun(f.Context(), id, runStale, func(run.RunStatus, run.Stats) run.Audit { return entry("DONE") })
	require.NoError(f, err)
	require.True(f, ended)
}

func findingsLastCompleted(f *findingsTest) {
	last := func() (string, time.Time) {
		id, began, ok, err := f.Findings.LastCompleted(f.Context(), "a kind")
		require.NoError(f, err)
		require.Equal(f, id != "", ok)
		require.Equal(f, id == "", began.IsZero())
		return id, began
	}
	id, _ := last()
	require.Empty(f, id)
	f.begin("r1", "a kind", "")
	id, _ = last()
	require.Empty(f, id, "it is running")
	f.complete(f.Runs, "r1", 0)
	f.begin("other-kind", run.Drain, "")
	f.complete(f.Runs, "other-kind", 0)
	f.begin("failures", "a kind", "")
	f.complete(f.Runs, "failures", 1)
	f.begin("named", "a kind", `{"ids":["a"]}`)
	f.complete(f.Runs, "named", 0)
	f.beginIn(f.OtherRuns, "dev", "theirs", "a kind", "")
	f.complete(f.OtherRuns, "theirs", 0)
	f.begin("r2", "a kind", "")
	id, began := last()
	require.Equal(f, "r1", id)
	r1, _, err := f.Runs.Run(f.Context(), "r1")
	require.NoError(f, err)
	require.Equal(f, r1.StartedAt, began)
	f.complete(f.Runs, "r2", 0)
	id, _ = last()
	require.Equal(f, "r2", id)
}

func findingsWaits(f *findingsTest) {
	waits := func(r run.Run, follows string) bool {
		f.Helper()
		yes, err := f.Findings.Waits(f.Context(), r, follows)
		require.NoError(f, err)
		return yes
	}
	f.beginIn(f.OtherRuns, "dev", "theirs", "a kind", "")
	f.begin("other-kind", run.Drain, "")
	first := f.begin("r1", "a kind", "")
	second := f.begin("r2", "a kind", "")
	require.False(f, waits(first, ""), "the younger waits for the older one")
	require.True(f, waits(second, ""))
	require.True(f, waits(first, "other-kind"))
	require.False(f, waits(first, "unknown"))
	require.False(f, waits(run.Run{ID: "unknown", Kind: "a kind"}, ""))
	ok, err := f.Runs.CancelRun(f.Context(), "r1", entry(run.CodeRunCancel))
	require.NoError(f, err)
	require.True(f, ok)
	require.True(f, waits(second, ""), "it has not ended yet")
	_, err = f.Runs.CompleteRun(f.Context(), "r1", runStale, func(run.RunStatus, run.Stats) run.Audit { return entry("DONE") })
	require.NoError(f, err)
	require.False(f, waits(second, ""))
	f.complete(f.Runs, "other-kind", 0)
	require.False(f, waits(second, "other-kind"))
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
	f.save("r1", []reconcile.Seen{seen}, nil, 1, 0)
	ctx, cancel := context.WithCancel(f.Context())
	cancel()
	keys := []reconcile.Key{seen.Key}
	for name, call := range map[string]func() error{
		"save":   func() error { _, _, err := f.Findings.Save(ctx, "r2", nil, keys); return err },
		"list":   func() error { _, err := f.Findings.List(ctx, reconcile.Query{}, nil, 1); return err },
		"counts": func() error { _, err := f.Findings.Counts(ctx); return err },
		"queued": func() error { return f.Findings.MarkQueued(ctx, "m1", keys) },
		"accept": func() error { return f.Findings.Accept(ctx, keys, accepts()) },
		"last":   func() error { _, _, _, err := f.Findings.LastCompleted(ctx, run.Drain); return err },
		"waits":  func() error { _, err := f.Findings.Waits(ctx, run.Run{}, ""); return err },
		"adopt":  func() error { _, err := f.Findings.AdoptedAt(ctx); return err },
	} {
		err := call()
		require.Equal(f, fault.Infrastructure, fault.KindOf(err), "%s: %v", name, err)
		require.ErrorIs(f, err, context.Canceled, name)
	}
	found := f.one()
	require.Equal(f, []any{reconcile.Open, "r1", ""}, []any{found.State, found.Run, found.QueuedBy})
}

// UseFindings makes every call of the ports once.
func UseFindings(t testing.TB, s FindingsStore) {
	t.Helper()
	ctx, seen := t.Context(), []reconcile.Seen{seenAt(reconcile.Stale, 1, "a", "h"), seenAt(reconcile.Edited, 2, "a", "h")}
	opened, _, err := s.Save(ctx, "r1", seen, nil)
	require.NoError(t, err)
	require.Equal(t, 2, opened)
	require.NoError(t, s.MarkQueued(ctx, "m1", []reconcile.Key{seen[0].Key}))
	require.NoError(t, s.Accept(ctx, []reconcile.Key{seen[1].Key}, accepts()))
	opened, closed, err := s.Save(ctx, "r2", seen[1:], []reconcile.Key{seen[0].Key})
	require.NoError(t, err)
	require.Equal(t, []int{0, 1}, []int{opened, closed})
	list, err := s.List(ctx, reconcile.Query{}, nil, 10)
	require.NoError(t, err)
	require.Len(t, list, 2)
	counts, err := s.Counts(ctx)
	require.NoError(t, err)
	require.Equal(t, []reconcile.Count{{Class: reconcile.Edited, Accepted: 1}}, counts)
	_, _, _, err = s.LastCompleted(ctx, run.Drain)
	require.NoError(t, err)
	_, err = s.Waits(ctx, run.Run{ID: "r1", Kind: run.Drain}, "r2")
	require.NoError(t, err)
	_, err = s.AdoptedAt(ctx)
	require.NoError(t, err)
}
