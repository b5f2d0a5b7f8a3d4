package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/fault"
)

// ControlHarness has the port under test, as two instances of the app.
type ControlHarness struct {
	// Control is the port under test, with nothing stored in it.
	Control breaker.ControlStore
	// Another is the same document as another instance of the app reaches it.
	Another breaker.ControlStore
}

// TestControlStore checks an implementation of breaker.ControlStore against the port's contract. open makes a new one
// per test.
func TestControlStore(t *testing.T, open func(t *testing.T) ControlHarness) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, ControlHarness)
	}{
		{"what is not there is the zero control without an etag", controlAbsent},
		{"what one instance stores, whole, another loads", controlWhole},
		{"store answers the etag that the next store needs", controlChain},
		{"store replaces the whole", controlReplaces},
		{"store against another etag changes nothing", controlStale},
		{"of 20 first stores exactly one wins", controlCreateRace},
		{"of 20 stores with one etag exactly one wins", controlRace},
		{"counting by compare-and-set loses no count", controlCounts},
		{"members that nobody knows are carried over", controlUnknown},
		{"each instance has its status, and the last one counts", controlStatuses},
		{"a control call whose context has ended is infrastructure", controlCancelled},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
	}
}

func controlAbsent(t *testing.T, h ControlHarness) {
	for range 2 {
		requireControl(t, h, breaker.Control{}, "")
	}
	for _, tag := range []string{"*", `"never-was"`} {
		_, err := h.Control.Store(t.Context(), control("build 1"), tag)
		requireFault(t, err, fault.Contention, fault.Changed, "etag %q", tag)
		requireControl(t, h, breaker.Control{}, "")
	}
}

func controlWhole(t *testing.T, h ControlHarness) {
	tag, err := h.Control.Store(t.Context(), control("build 1"), "")
	require.NoError(t, err)
	require.NotEmpty(t, tag)
	requireControl(t, h, control("build 1"), tag)
	next, err := h.Another.Store(t.Context(), control("build 2"), tag)
	require.NoError(t, err)
	requireControl(t, h, control("build 2"), next)
}

func controlChain(t *testing.T, h ControlHarness) {
	seen := map[string]bool{"": true}
	tag := ""
	for i := range 6 {
		c := control("build 1")
		c.Poison.Count = i / 2 // every second store changes nothing and is a write all the same
		next, err := h.Control.Store(t.Context(), c, tag)
		require.NoError(t, err)
		require.False(t, seen[next], "every store has an etag of its own")
		requireControl(t, h, c, next)
		seen[next], tag = true, next
	}
}

func controlReplaces(t *testing.T, h ControlHarness) {
	first := control("build 1")
	first.Extra = map[string]json.RawMessage{"old": json.RawMessage(`1`), "kept": json.RawMessage(`2`)}
	tag, err := h.Control.Store(t.Context(), first, "")
	require.NoError(t, err)
	second := breaker.Control{AppVersion: "build 2", Extra: map[string]json.RawMessage{"kept": json.RawMessage(`2`)}}
	tag, err = h.Control.Store(t.Context(), second, tag)
	require.NoError(t, err)
	requireControl(t, h, second, tag)
}

func controlStale(t *testing.T, h ControlHarness) {
	stale, err := h.Control.Store(t.Context(), control("build 1"), "")
	require.NoError(t, err)
	tag, err := h.Another.Store(t.Context(), control("build 2"), stale)
	require.NoError(t, err)
	for _, other := range []string{stale, "", "*", `"never-was"`, strings.Trim(tag, `"`) + "x"} {
		_, err := h.Control.Store(t.Context(), control("build 3"), other)
		requireFault(t, err, fault.Contention, fault.Changed, "etag %q", other)
		requireControl(t, h, control("build 2"), tag)
	}
	_, err = h.Control.Store(t.Context(), control("build 3"), tag)
	require.NoError(t, err, "the etag of the newest is good")
}

func controlCreateRace(t *testing.T, h ControlHarness) { raceControl(t, h, "") }

func controlRace(t *testing.T, h ControlHarness) {
	tag, err := h.Control.Store(t.Context(), control("before"), "")
	require.NoError(t, err)
	raceControl(t, h, tag)
}

// raceControl has 20 writers store with one etag: the document is the winner's.
func raceControl(t *testing.T, h ControlHarness, tag string) {
	t.Helper()
	const n = 20
	next, errs := atOnce(n, func(i int) (string, error) {
		c := control("race")
		c.Poison.Count = i
		return []breaker.ControlStore{h.Control, h.Another}[i%2].Store(t.Context(), c, tag)
	})
	winner := oneWins(t, errs, fault.Changed)
	want := control("race")
	want.Poison.Count = winner
	requireControl(t, h, want, next[winner])
}

func controlCounts(t *testing.T, h ControlHarness) {
	const workers, each = 8, 5
	_, errs := atOnce(workers, func(i int) (n int, err error) {
		for n = 0; n < each && err == nil; n++ {
			err = countOne(t.Context(), []breaker.ControlStore{h.Control, h.Another}[i%2])
		}
		return n, err
	})
	require.NoError(t, errors.Join(errs...))
	c, _, err := h.Control.Load(t.Context())
	require.NoError(t, err)
	require.Equal(t, workers*each, c.Poison.Count)
}

// countOne adds one, and tries again after each conflict.
func countOne(ctx context.Context, store breaker.ControlStore) error {
	const tries = 1000 // one writer wins each round, so a few dozen are enough
	for range tries {
		c, tag, err := store.Load(ctx)
		if err != nil {
			return err
		}
		c.Poison.Count++
		if _, err := store.Store(ctx, c, tag); !fault.Has(err, fault.Changed) {
			return err
		}
	}
	return errors.New("nobody ever wins")
}

func controlUnknown(t *testing.T, h ControlHarness) {
	newer := control("build 9")
	newer.Extra = map[string]json.RawMessage{
		"theirs":       json.RawMessage(`{"list":[1,"2",null],"big":9007199254740991}`),
		"<odd & name>": json.RawMessage(`"ü😀"`), "ttl_of_theirs": json.RawMessage(`true`),
	}
	_, err := h.Control.Store(t.Context(), newer, "")
	require.NoError(t, err)
	loaded, tag, err := h.Another.Load(t.Context())
	require.NoError(t, err)
	loaded.AppVersion = "build 1"
	tag, err = h.Another.Store(t.Context(), loaded, tag)
	require.NoError(t, err)
	newer.AppVersion = "build 1"
	requireControl(t, h, newer, tag)
}

func controlCancelled(t *testing.T, h ControlHarness) {
	ctx := lateContext(t)
	_, err := h.Control.Store(ctx, control("build 1"), "")
	requireFault(t, err, fault.Infrastructure, fault.NoCondition)
	require.ErrorIs(t, err, context.Canceled)
	_, _, err = h.Control.Load(ctx)
	requireFault(t, err, fault.Infrastructure, fault.NoCondition)
	requireControl(t, h, breaker.Control{}, "")
	tag, err := h.Control.Store(t.Context(), control("build 1"), "")
	require.NoError(t, err)
	_, err = h.Control.Store(ctx, control("build 2"), tag)
	requireFault(t, err, fault.Infrastructure, fault.NoCondition)
	requireControl(t, h, control("build 1"), tag)
}

func controlStatuses(t *testing.T, h ControlHarness) {
	now := time.Now().UTC().Truncate(time.Second)
	statuses := func(since time.Time) []breaker.Status {
		all, err := h.Another.LoadStatuses(t.Context(), since)
		require.NoError(t, err)
		slices.SortFunc(all, func(a, b breaker.Status) int { return strings.Compare(a.Instance, b.Instance) })
		return all
	}
	require.Empty(t, statuses(now.Add(-time.Hour)))
	for _, s := range []breaker.Status{status("a", now.Add(-time.Minute)), status("ü-b", now), status("a", now)} {
		require.NoError(t, h.Control.StoreStatus(t.Context(), s))
	}
	require.Equal(t, []breaker.Status{status("a", now), status("ü-b", now)}, statuses(now.Add(-time.Hour)))
	require.Empty(t, statuses(now.Add(time.Hour)))
	requireControl(t, h, breaker.Control{}, "")
	ctx := lateContext(t)
	requireFault(t, h.Control.StoreStatus(ctx, status("c", now)), fault.Infrastructure, fault.NoCondition)
	_, err := h.Control.LoadStatuses(ctx, now)
	requireFault(t, err, fault.Infrastructure, fault.NoCondition)
}

// status makes a status that says something in every member.
func status(instance string, at time.Time) breaker.Status {
	return breaker.Status{
		Instance: instance, At: at,
		Failing: []breaker.Failing{{Code: "547", Documents: 20, Since: at, LastAt: at.Add(time.Minute)}},
		Dependencies: map[string]breaker.Dependency{
			"sql": {
				State: breaker.DependencyFailing, Kind: fault.Infrastructure, Code: "refused", Reason: `<down & "out">`,
				Since: at, SeenAt: at.Add(time.Minute), By: "ü",
			},
			"cosmos": {State: breaker.DependencyOK, Since: at, SeenAt: at, By: "another"},
		},
		Stops: []breaker.Stop{{From: at, To: at.Add(2 * time.Minute), Code: "refused"}}, Committed: 1 << 40,
	}
}

// control makes a control document that says something in every member.
func control(version string) breaker.Control {
	at := time.Date(2025, 12, 17, 16, 30, 15, 123_456_700, time.UTC)
	return breaker.Control{
		Breaker: breaker.State{
			Name: breaker.HalfOpen, Limit: 25, OpenUntil: at.Add(time.Minute), Kind: fault.Quota, Code: "9002",
			Reason: `<full & "quoted">`,
			Since:  at.Add(time.Second), ChangedAt: at, HeldBy: "instance ü", WaitSeconds: 20,
			SerialUntil: at.Add(time.Hour),
		},
		Transitions: []breaker.Transition{
			{At: at, From: breaker.Open, To: breaker.Closed, By: "ü", Why: "<why>", Code: "9002", StoppedFor: 7},
		},
		Applied: []breaker.Applied{{Build: version, At: at.Add(time.Hour)}, {Build: "another", At: at}},
		Poison:  breaker.PoisonCount{Hour: at.Truncate(time.Hour), Count: 7},
		Missed: breaker.Missed{
			Documents: 26, Oldest: at, At: at.Add(time.Hour), Sample: "2025-12-17 ü", Code: "document.too_deep",
		},
		Feed: breaker.FeedLag{Seconds: 86_400, At: at}, AppVersion: version,
		Skipped: []breaker.Skipped{
			{SysName: "wéb", Documents: 3, Since: at, LastAt: at.Add(time.Minute), Sample: "2025-12-17 ü"},
			{Documents: 1, Since: at, LastAt: at},
		},
	}
}

// requireControl loads the document by both ways and compares it: members of an unknown kind by their meaning.
func requireControl(t *testing.T, h ControlHarness, want breaker.Control, tag string) {
	t.Helper()
	for _, store := range []breaker.ControlStore{h.Control, h.Another} {
		got, found, err := store.Load(t.Context())
		require.NoError(t, err)
		require.Equal(t, tag, found, "the etag")
		require.Equal(t, len(want.Extra), len(got.Extra), "members that nobody knows: %v", got.Extra)
		for name, value := range want.Extra {
			require.JSONEq(t, string(value), string(got.Extra[name]), name)
		}
		expected := want
		expected.Extra, got.Extra = nil, nil
		require.Equal(t, expected, got)
	}
}
