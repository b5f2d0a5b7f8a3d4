package conformance

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
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

func TestRequestsForABisectAreBounded(t *testing.T) {
	for _, c := range []struct {
		n, k, most int
	}{{100, 0, 1}, {1, 1, 1}, {2, 1, 3}, {100, 1, 15}, {100, 3, 41}, {100, 100, 199}, {8, 1, 7}} {
		require.Equal(t, c.most, mostRequests(c.n, c.k), "%d bad of %d", c.k, c.n)
	}
}
