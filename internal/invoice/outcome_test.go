package invoice_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
)

// The list has each constant of the type once. The suite of the stores saves each of the list and refuses other words.
func TestTheListOfOutcomesHasEachConstant(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "outcome.go", nil, 0)
	require.NoError(t, err)
	var constants []invoice.Outcome
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		require.Equal(t, "Outcome", spec.Type.(*ast.Ident).Name, "%v has the type", spec.Names)
		word, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		require.NoError(t, err)
		require.LessOrEqual(t, len(word), 20, "it fits the column batch_item.outcome")
		constants = append(constants, invoice.Outcome(word))
		return false
	})
	require.NotEmpty(t, constants)
	require.ElementsMatch(t, constants, invoice.Outcomes())
}

// The runbook says what each outcome means and what to do. The words of a shadow stand there beside them.
func TestTheRunbookHasEachOutcome(t *testing.T) {
	page, err := os.ReadFile("../../docs/runbook.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(page), "| outcome | meaning | what to do |\n|---|---|---|\n")
	require.True(t, found)
	table, _, _ := strings.Cut(section, "\n\n")
	var words []string
	for _, row := range regexp.MustCompile(`(?m)^\| ([^|]+) \|`).FindAllStringSubmatch(table, -1) {
		words = append(words, strings.Split(row[1], ", ")...)
	}
	want := []string{"matches", "differs", "holds_newer", "cannot_tell", "refused", "would_be_..."}
	for _, o := range invoice.Outcomes() {
		want = append(want, string(o))
	}
	require.ElementsMatch(t, want, words)
}

func TestWhatAnOutcomeLeavesToDo(t *testing.T) {
	for _, o := range invoice.Outcomes() {
		left := []invoice.Outcome{
			invoice.OutcomeRetryScheduled, invoice.OutcomeLeft, invoice.OutcomeWaiting, invoice.OutcomeFailed,
		}
		require.Equal(t, !slices.Contains(left, o), o.Success(), o)
	}
}
