package conformance

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

func TestEveryCaseHasANameOfItsOwn(t *testing.T) {
	require.GreaterOrEqual(t, len(sinkCases()), 40)
	seen := map[string]bool{}
	for _, c := range slices.Concat(sinkCases(), bisectCases()) {
		require.False(t, seen[c.name], "%s: a deviation must name one case", c.name)
		seen[c.name] = true
		full := SinkHarness{}.lacks(c.needs)
		require.Equal(t, len(c.needs), len(full),
			"%s needs a capability that no harness could have: %v", c.name, c.needs)
	}
}

// A deviation is verified each time: it is no way to skip a case.
func TestADeviationMustStillBeTrueAndNothingElse(t *testing.T) {
	d := Deviation{Seen: "document 3930", Because: "it has no XACT_STATE"}
	require.Empty(t, d.judge("boom\nthe sink's last answer: document 3930"))
	require.Contains(t, d.judge(""), "no longer needed")
	require.Contains(t, d.judge("boom\nthe sink's last answer: document 547"), "another way")
	require.NotEmpty(t, Deviation{Because: "x"}.judge("boom"), "what was seen must be named")
	require.NotEmpty(t, Deviation{Seen: "boom"}.judge("boom"), "and why")
}

// answers is a sink that always answers the same.
type answers struct{ err error }

func (a answers) Apply(
	_ context.Context, items []commit.Item, _ commit.Mode, _ breaker.Heartbeat,
) ([]commit.DocumentOutcome, error) {
	if a.err != nil {
		return nil, a.err
	}
	out := make([]commit.DocumentOutcome, len(items))
	for i, it := range items {
		out[i] = commit.DocumentOutcome{
			DocumentID: it.DocumentID, Verdict: invoice.OutcomeApplied,
			Rows: []commit.RowOutcome{{DetailID: it.Main, Verdict: invoice.OutcomeApplied}},
		}
	}
	return out, nil
}

func (a answers) Heartbeat(context.Context, breaker.Heartbeat) (breaker.Heartbeat, error) {
	return breaker.Heartbeat{}, a.err
}

func (a answers) TakeOver(context.Context, breaker.Heartbeat) (breaker.Heartbeat, error) {
	return breaker.Heartbeat{}, a.err
}

func observed(t *testing.T, sink commit.Sink, f func(*sinkTest)) string {
	t.Helper()
	s := &sinkTest{T: t, answer: &lastAnswer{sink: sink}}
	s.h.Sink = s.answer
	return s.observe(f)
}

func TestTheFailureOfADeviatingCaseIsSeenAndNotCounted(t *testing.T) {
	refuses := answers{fault.New(fault.Document, "test", "3930", "no")}
	went := func(s *sinkTest) { s.gives(doc("a", 1, 1, "x", 1), "applied(applied)") }
	require.Empty(t, observed(t, answers{}, went), "a case that passes has no failure")

	failure := observed(t, refuses, went)
	require.Contains(t, failure, "the sink's last answer: document 3930")
	failure = observed(t, answers{}, func(s *sinkTest) { s.gives(doc("a", 1, 1, "x", 1), "unchanged(unchanged)") })
	require.Contains(t, failure, "the sink's last answer: applied(applied)")

	for name, fails := range map[string]func(*sinkTest){
		"error": func(s *sinkTest) { s.Error("boom") }, "errorf": func(s *sinkTest) { s.Errorf("%s", "boom") },
		"fatal": func(s *sinkTest) { s.Fatal("boom") }, "fatalf": func(s *sinkTest) { s.Fatalf("%s", "boom") },
		"a harness that cannot": func(s *sinkTest) { var tb testing.TB = s; tb.Fatalf("boom") },
		"now":                   func(s *sinkTest) { s.FailNow() }, "fail": func(s *sinkTest) { s.Fail() },
	} {
		ended := true
		failure := observed(t, answers{}, func(s *sinkTest) {
			fails(s)
			require.True(t, s.Failed())
			ended = false
		})
		require.NotEmpty(t, failure, name)
		require.Equal(t, strings.HasPrefix(name, "fatal") || name == "now" ||
			name == "a harness that cannot", ended, name)
	}
	require.False(t, t.Failed())
}

func TestRequestsForABisectAreBounded(t *testing.T) {
	for _, c := range []struct {
		n, k, most int
	}{{100, 0, 1}, {1, 1, 1}, {2, 1, 3}, {100, 1, 15}, {100, 3, 41}, {100, 100, 199}, {8, 1, 7}} {
		require.Equal(t, c.most, mostRequests(c.n, c.k), "%d bad of %d", c.k, c.n)
	}
}
