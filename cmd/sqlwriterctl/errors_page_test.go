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
		require.Contains(t, section, cell(r.Reason))
	}
}

func kindsTable(all []fault.Row) string {
	var b strings.Builder
	b.WriteString("| kind | scope | charged to | spends | codes, among others | what happens next |\n|---|---|---|---|---|---|\n")
	for _, r := range fault.Rules() {
		follows := fault.Row{Kind: r.Kind}.Consequence()
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", r.Kind, r.Scope, chargedTo(r.Scope), follows.Spends, samples(all, r.Kind), cell(follows.Next))
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

// samples returns the most frequent codes of a kind.
func samples(all []fault.Row, k fault.Kind) string {
	var codes []string
	for _, known := range []string{
		"18456", "4060", "229", "208", "3906", "40613", "connection", "timeout", "refused", "breaker_open",
		"40501", "10928", "49918", "429/*", "9002", "1105", "40544",
		"1205", "1222", "3960", "2627", "row_count", "449/*", "412/*",
		"2628", "547", "515", "245", "missing_detail_row", "validation.too_long", "fails_alone", "panic", "answer",
	} {
		if slices.ContainsFunc(all, func(r fault.Row) bool { return r.Code == known && r.Kind == k }) {
			codes = append(codes, "`"+known+"`")
		}
	}
	return strings.Join(codes, ", ")
}

const pageHead = `<!-- Produced from the tables of errors: go test ./cmd/sqlwriterctl -run Produced -update -->
# Errors: what a code means, what it costs and what happens next

Everything that goes wrong is of one of six kinds. The kind decides what a failure is charged to, and a condition may refine it
(` + "`internal/fault`" + `). Each adapter has one table that makes kinds of codes (` + "`classify.go`" + `, ` + "`Faults()`" + `). This page and
` + "`sqlwriterctl explain CODE`" + ` are made of these tables, and each row is a test. A code stands in the log (` + "`code`" + `), in
` + "`sql_writer.attempts`" + ` and in what Health says.

Sources: [requirements.md](requirements.md) has the rules and [facts.md](facts.md) the facts of the platform with their pages; of
SQL Server's numbers it cites "Troubleshoot common errors in Azure SQL", SqlConfigurableRetryFactory and Entity Framework
Core's SqlServerTransientExceptionDetector.

`

// errorsPage makes docs/errors.md.
func errorsPage(all []fault.Row) string {
	var b strings.Builder
	b.WriteString(pageHead)
	b.WriteString("## Kinds\n\n" + kindsTable(all))
	b.WriteString("\nA condition, where a code has one, says it more exactly:\n\n| condition | means | spends | what happens next |\n|---|---|---|---|\n")
	for _, c := range fault.ConditionRules() {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", c.Condition, cell(c.Means), c.Spends, cell(c.Next))
	}
	b.WriteString("\nWhat happens next is as the kind or the condition says, unless it stands with the code.\n")
	for _, section := range []struct{ adapter, about string }{
		{"sqlserver", "SQL Server's numbers, and words for what has none. What concerns no document (connecting, checking, a heartbeat) " +
			"is infrastructure whatever its number: a document's number then blames nobody."},
		{"sqlite", "SQLite's result codes. An extended code that is not here counts as its primary code (the rest of a division by 256)."},
		{"cosmos", "Statuses of Azure Cosmos DB, with the substatus where there is one; `/*` is any or none. The first row that fits decides."},
		{"blob", "Statuses of Azure Blob Storage, with its error code; `/*` is any or none. The first row that fits decides."},
		{"servicebus", "Conditions of AMQP, codes of the Go SDK (`connlost`, `unauthorized`, ...), and words for the rest. The first row that fits decides."},
		{"run", "What runs say by themselves; what the tables of runs say is under writer."},
		{"writer", "Codes of our own: validation, the breaker, the process, operators' commands."},
	} {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| codes | kind | meaning | next, where it is special | source |\n|---|---|---|---|---|\n", section.adapter, section.about)
		for _, group := range grouped(all, section.adapter) {
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
		key := strings.Join([]string{string(r.Kind), string(r.Condition), r.About, r.Reason, r.Own.Spends, r.Own.Next}, "\x00")
		i, ok := at[key]
		if !ok {
			i = len(groups)
			at[key], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], r)
	}
	return groups
}

func writeGroup(b *strings.Builder, group []fault.Row) {
	first := group[0]
	var codes, sources []string
	for _, r := range group {
		code := "`" + r.Code + "`"
		if r.Name != "" {
			code += " " + r.Name
		}
		codes = append(codes, code)
		if !slices.Contains(sources, r.Source) {
			sources = append(sources, r.Source)
		}
	}
	kind, meaning := string(first.Kind), first.Reason
	if first.Condition != fault.NoCondition {
		kind += ", " + string(first.Condition)
	}
	if first.About != "" {
		meaning += " (about: " + first.About + ")"
	}
	fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", strings.Join(codes, ", "), kind, cell(meaning), cell(cmp.Or(first.Own.Next, "-")), cell(strings.Join(sources, "; ")))
}

// cell escapes a text for a Markdown table.
func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
