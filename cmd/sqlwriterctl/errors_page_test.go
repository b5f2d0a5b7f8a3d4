package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/app/open"
	"sqlwriter/internal/fault"
)

var update = flag.Bool("update", false, "rewrite docs/errors.md from the tables of errors")

func TestProducedErrorsPage(t *testing.T) {
	const path = "../../docs/errors.md"
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(errorsPage(open.Faults())), 0o600))
		require.NoError(t, os.Chmod(path, 0o644))
	}
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, errorsPage(open.Faults()), string(got), "make update rewrites it")
}

// The page has every row, each in the section of its adapter.
func TestTheErrorsPageHasEveryRow(t *testing.T) {
	page := errorsPage(open.Faults())
	for _, r := range open.Faults() {
		section, ok := strings.CutPrefix(page[strings.Index(page, "## "+r.Adapter):], "## "+r.Adapter)
		require.True(t, ok, r.Adapter)
		section, _, _ = strings.Cut(section, "\n## ")
		require.Contains(t, section, "`"+r.Code+"`")
		require.Contains(t, section, r.Reason)
	}
}

func kindsTable(all []fault.Row) string {
	var b strings.Builder
	b.WriteString(
		"| kind | scope | charged to | spends | codes, among others | what happens next |\n|---|---|---|---|---|---|\n")
	for _, r := range fault.Rules() {
		follows := fault.Row{Kind: r.Kind}.Consequence()
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", r.Kind, r.Scope, chargedTo(r.Scope), follows.Spends,
			samples(all, r.Kind), cell(follows.Next))
	}
	return b.String()
}

func chargedTo(s fault.Scope) string {
	switch s {
	case fault.ScopeDependency:
		return "nothing; all wait"
	case fault.ScopeAttempt:
		return "nothing; this try"
	case fault.ScopeDocument:
		return "this document"
	}
	return ""
}

// samples returns the most frequent codes of a kind. What happens next is the kind's for each of their rows: a code of
// another service than SQL, or with a condition, has its own.
func samples(all []fault.Row, k fault.Kind) string {
	var codes []string
	for _, known := range []string{
		"18456", "4060", "229", "208", "3906", "40613", "connection", "timeout", "refused", "breaker_open",
		"40501", "10928", "49918", "429/*", "9002", "1105", "40544",
		"1205", "1222", "3960", "2627", "row_count", "449/*", "412/*",
		"2628", "547", "515", "245", "missing_detail_row", "validation.too_long", "fails_alone", "panic", "answer",
	} {
		if rows := rowsOf(all, known, k); len(rows) > 0 && !slices.ContainsFunc(rows, differs) {
			codes = append(codes, "`"+known+"`")
		}
	}
	return strings.Join(codes, ", ")
}

// rowsOf returns a code's rows of one kind.
func rowsOf(all []fault.Row, code string, k fault.Kind) []fault.Row {
	return slices.DeleteFunc(slices.Clone(all), func(r fault.Row) bool { return r.Code != code || r.Kind != k })
}

// differs reports whether something else than what the kind says follows from a row.
func differs(r fault.Row) bool {
	return r.Consequence().Next != fault.Row{Kind: r.Kind}.Consequence().Next
}

// The table of kinds has the times of the breaker, which is in front of SQL alone. So each row of another service that
// concerns a dependency says itself what follows, and the table of kinds does not name its code.
func TestOnlyCodesOfSQLOpenTheBreaker(t *testing.T) {
	others := []string{"cosmos", "blob", "servicebus", "run"}
	for _, r := range open.Faults() {
		if slices.Contains(others, r.Adapter) && fault.ScopeOf(r.Kind) == fault.ScopeDependency {
			require.NotEmpty(t, r.Own.Next, "%s %s", r.Adapter, r.Code)
			require.NotContains(t, r.Own.Next, "the breaker opens", "%s %s", r.Adapter, r.Code)
		}
	}
	kinds := kindsTable(open.Faults())
	require.Contains(t, kinds, "`40501`")
	require.NotContains(t, kinds, "`429/*`")
}

const pageHead = `<!-- Produced from the tables of errors: go test ./cmd/sqlwriterctl -run Produced -update -->
# Errors: what a code means, what it costs and what happens next

Everything that goes wrong is of one of six kinds. The kind says what a failure is charged to.
A condition may refine it. A code stands in the log (` + "`code`" + `), in ` + "`sql_writer.attempts`" + ` and in Health. ` + "`sqlwriterctl explain CODE`" + ` says the same as this page,
with the row's source. Both are made from the adapters' tables (` + "`Faults()`" + `), and each row is a test.

`

// errorsPage makes docs/errors.md.
func errorsPage(all []fault.Row) string {
	var b strings.Builder
	b.WriteString(pageHead)
	b.WriteString(
		"## Kinds\n\nThe times are those of the breaker, which is in front of SQL alone. Codes of other services say below what happens next.\n\n" + kindsTable(all))
	b.WriteString(
		"\nA condition, where a code has one, says it more exactly:\n\n| condition | means | spends | what happens next |\n|---|---|---|---|\n")
	for _, c := range fault.ConditionRules() {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", c.Condition, cell(c.Means), c.Spends, cell(c.Next))
	}
	letters, says := repeated(all)
	b.WriteString(
		"\nWhat happens next is as the kind or the condition says, unless it stands above the code: in words, or by a letter.\n" + says)
	for _, section := range []struct{ adapter, about string }{
		{
			"sqlserver",
			"SQL Server's numbers, and words for what has none. What concerns no document (connecting, checking, a heartbeat) " +
				"is infrastructure whatever its number: a document's number then blames nobody.",
		},
		{
			"sqlite",
			"SQLite's result codes. An extended code that is not here counts as its primary code (the rest of a division by 256).",
		},
		{
			"cosmos",
			"Statuses of Azure Cosmos DB, with the substatus where there is one; `/*` is any or none. The first row that fits decides.",
		},
		{
			"blob",
			"Statuses of Azure Blob Storage, with its error code; `/*` is any or none. The first row that fits decides.",
		},
		{
			"servicebus",
			"Conditions of AMQP, codes of the Go SDK (`connlost`, `unauthorized`, ...), and words for the rest. The first row that fits decides.",
		},
		{"run", "What runs say by themselves; what the tables of runs say is under writer."},
		{"writer", "Codes of our own: validation, the breaker, the process, operators' commands."},
	} {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", section.adapter, section.about)
		var last string
		for _, group := range grouped(all, section.adapter) {
			if head := headOf(group[0], letters); head != last {
				fmt.Fprintf(&b, "\n%s\n\n", head)
				last = head
			}
			writeGroup(&b, group)
		}
	}
	return b.String()
}

// grouped joins an adapter's rows that differ only in their codes, in the order of the table.
func grouped(all []fault.Row, adapter string) [][]fault.Row {
	var groups [][]fault.Row
	at := map[string]int{}
	for _, r := range all {
		if r.Adapter != adapter {
			continue
		}
		key := strings.Join(
			[]string{string(r.Kind), string(r.Condition), r.About, r.Reason, r.Own.Spends, r.Own.Next}, "\x00")
		i, ok := at[key]
		if !ok {
			i = len(groups)
			at[key], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], r)
	}
	return groups
}

// repeated gives a letter to each consequence that more than two groups have, and says what the letters stand for.
func repeated(all []fault.Row) (letters map[string]string, says string) {
	letters, groups := map[string]string{}, map[string]map[string]bool{}
	for _, r := range all {
		next := r.Own.Next
		if groups[next] == nil {
			groups[next] = map[string]bool{}
		}
		groups[next][r.Adapter+headOf(r, nil)+r.Reason] = true
		if next == "" || len(groups[next]) != 3 || letters[next] != "" {
			continue
		}
		letters[next] = string(rune('a' + len(letters)))
		says += fmt.Sprintf("\n- **%s**: %s.", letters[next], next)
	}
	return letters, says + "\n"
}

// headOf says the kind of the rows below it, and what happens next where that is special.
func headOf(r fault.Row, letters map[string]string) string {
	head := "**" + string(r.Kind) + "**"
	if r.Condition != fault.NoCondition {
		head += ", " + string(r.Condition)
	}
	if r.Own.Next != "" {
		head += "; next: " + cmp.Or(letters[r.Own.Next], r.Own.Next)
	}
	return head
}

func writeGroup(b *strings.Builder, group []fault.Row) {
	var codes []string
	for _, r := range group {
		code := "`" + r.Code + "`"
		if r.Name != "" {
			code += " " + r.Name
		}
		codes = append(codes, code)
	}
	meaning := group[0].Reason
	if group[0].About != "" {
		meaning += " (about: " + group[0].About + ")"
	}
	fmt.Fprintf(b, "- %s: %s\n", strings.Join(codes, ", "), meaning)
}

// cell escapes a text for a Markdown table.
func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
