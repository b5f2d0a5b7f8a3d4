package fault_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
)

func TestARowIsNamedByItsCodeItsNameAndItsStatus(t *testing.T) {
	row := fault.Row{Code: "429/3200", Name: "RU_LIMIT"}
	for _, code := range []string{"429/3200", "429", "RU_LIMIT", "ru_limit"} {
		require.True(t, row.Names(code), code)
	}
	for _, code := range []string{"", "42", "4290", "429/1", "3200", "RU"} {
		require.False(t, row.Names(code), code)
	}
	require.False(t, row.StandsFor("429/1"))
	row.Covers = func(code string) bool { return strings.HasPrefix(code, "429/") }
	require.True(t, row.StandsFor("429/1"))
	require.False(t, row.Names("429/1"), "a row is named by what it says, not by what it covers")
}

func TestTheNarrowestWordDecidesWhatFollows(t *testing.T) {
	for _, r := range fault.Rules() {
		c := fault.Row{Kind: r.Kind}.Consequence()
		require.Equal(t, r.When, c.Next)
		require.Equal(t, r.SpendsRetry, c.Spends == fault.OneRetry, r.Kind)
		require.Equal(t, !r.SpendsRetry, c.Spends == fault.Nothing, r.Kind)
	}
	for _, c := range fault.ConditionRules() {
		require.NotEmpty(t, c.Means)
		require.Equal(t, c.Consequence, fault.Row{Kind: fault.Document, Condition: c.Condition}.Consequence())
	}
	require.Equal(t, fault.Row{Kind: fault.Document}.Consequence(),
		fault.Row{Kind: fault.Document, Condition: fault.MissingRow}.Consequence(),
		"a missing row is an ordinary error of the document's")
	own := fault.Consequence{Spends: "x", Next: "y"}
	require.Equal(t, own, fault.Row{Kind: fault.Document, Condition: fault.Gone, Own: own}.Consequence())
	require.Zero(t, fault.Row{Kind: "a kind from a newer build"}.Consequence())
}
