package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/app/open"
	"sqlwriter/internal/explain"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/reconcile"
)

// explained runs explain --json and returns the rows.
func (b *bench) explained(t *testing.T, codes ...string) []explain.Entry {
	t.Helper()
	require.Equal(t, exitOK, b.run(t, append([]string{"explain", "-o", "json"}, codes...)...), b.errors)
	var found []explain.Entry
	require.NoError(t, json.Unmarshal([]byte(b.out), &found), "stdout is JSON and nothing else")
	return found
}

func TestExplainPrintsTheConsequence(t *testing.T) {
	b := newBench(t)
	require.Equal(t, exitOK, b.run(t, "explain", "2628"), b.errors)
	for _, words := range []string{
		"sqlserver, 2628: document", "longer than the user's column", "document: this document alone",
		"one of the document's 5 retries", "2, 4, 8, 16, 32 min", "docs/requirements.md R32",
	} {
		require.Contains(t, b.out, words)
	}
	require.Empty(t, b.errors)

	require.Equal(t, exitOK, b.run(t, "explain", "40613", "9002"))
	require.Contains(t, b.out, "sqlserver, 40613: infrastructure")
	require.Contains(t, b.out, "sqlserver, 9002: quota")
	require.Equal(t, 2, strings.Count(b.out, "spends  nothing"))
}

func TestExplainFindsARowByEveryNameOfIt(t *testing.T) {
	b := newBench(t)
	for asked, want := range map[string]string{
		"REFUSED":                         "cosmos refused",
		"sqlite_busy":                     "sqlite 5",
		"52740":                           "sqlserver verdict_without_evidence",
		"Validation.Too_Long":             "writer validation.too_long",
		"429":                             "cosmos 429/*",
		"429/3200":                        "cosmos 429/*",
		"503/serverbusy":                  "blob 503/ServerBusy",
		"787":                             "sqlite 19",
		"404/1003":                        "cosmos 404/1003",
		"missing_detail_row":              "writer missing_detail_row",
		"paused":                          "writer paused",
		"50000":                           "sqlserver 50000",
		"409/BlobImmutableDueToLegalHold": "blob 409/*",
	} {
		var rows []string
		for _, e := range b.explained(t, asked) {
			require.Equal(t, asked, e.Asked)
			rows = append(rows, e.Adapter+" "+e.Code)
		}
		require.Contains(t, rows, want, asked)
	}
}

// One code may come from several dependencies, and have one meaning for a document and another for its container.
func TestExplainShowsEverySubjectOfACode(t *testing.T) {
	b := newBench(t)
	rows := func(code string) (all []string) {
		for _, e := range b.explained(t, code) {
			all = append(all, e.Adapter+" "+e.Code+" "+e.About)
		}
		return all
	}
	require.Equal(t, []string{"cosmos 400-499 one document", "cosmos 100-999 "}, rows("418")[:2])
	require.Equal(t, []string{"cosmos 500-599 ", "blob 503/ServerBusy ", "blob 500-599 "}, rows("503"))
	require.Equal(t, []string{"sqlserver 515 "}, rows("515"), "a number of a database's is no status")
	require.Equal(t,
		[]string{"sqlite 19 ", "sqlserver any other number severity 17 and up", "sqlserver any other number "},
		rows("1811"), "SQLITE_CONSTRAINT_TRIGGER, or a number of the server's that stands in no table")
	require.Contains(t, rows("412"), "cosmos 412/* one document")
	require.Contains(t, rows("412"), "cosmos 100-999 ")
}

func TestExplainAnUnknownCode(t *testing.T) {
	b := newBench(t)
	require.Equal(t, exitOK, b.run(t, "explain", "987654"))
	require.Contains(t, b.errors,
		"an unknown number of the server counts as the document's error if it fails alone, unless its severity is 17 or higher")
	require.Contains(t, b.out, "sqlserver, any other number: infrastructure")
	require.Contains(t, b.out, "sqlserver, any other number: document")

	require.Equal(t, exitUsage, b.run(t, "explain", "2628", "xyzzyxyzzy"))
	require.Contains(t, b.errors, "lists all")
	require.Empty(t, b.out, "a wrong code answers nothing")
}

// What --check of status names has an explanation, as codes of errors have.
func TestExplainWhatNeedsAttention(t *testing.T) {
	b := newBench(t)
	require.Equal(t, exitOK, b.run(t, "explain", "skipped"), b.errors)
	require.Regexp(t, `^attention, skipped\n  means  documents of another environment came`, b.out)
	require.Contains(t, b.out, "docs/runbook.md#documents-of-another-environment")
	require.NotContains(t, b.out, "spends")
	require.Equal(t, "attention", b.explained(t, "Timer_Silent")[0].Adapter)
}

// What a comparison finds or counts has an explanation.
func TestExplainAClassOfAComparison(t *testing.T) {
	b := newBench(t)
	require.Equal(t, exitOK, b.run(t, "explain", "stale"), b.errors)
	require.Regexp(t, `^finding, stale\n  means      the line has older content`, b.out)
	require.Contains(t, b.out, "by itself  writes the document again")
	require.Contains(t, b.out, "run start reindex --findings stale --dry-run")
	require.Contains(t, b.out, "docs/findings.md#the-findings")
	require.NotContains(t, b.out, "spends")
	require.Equal(t, exitOK, b.run(t, "explain", "Reviewed"), b.errors)
	require.Regexp(t, `^counted, reviewed\n  means  only the status`, b.out)
	require.NotContains(t, b.out, "by itself")
	for _, m := range reconcile.Meanings() {
		e := b.explained(t, string(m.Class))[0]
		require.Equal(t, string(m.Class), e.Code)
		require.NotEmpty(t, e.Do)
	}
}

// A command that an answer prints can be run: a row for many codes has the code that was asked for.
func TestExplainPrintsACodeThatCanBeTyped(t *testing.T) {
	b := newBench(t)
	require.Equal(t, exitOK, b.run(t, "explain", "14"), b.errors)
	require.NotContains(t, b.out, "any other number", "SQLITE_CANTOPEN has a row of its own")
	require.Empty(t, b.errors)
	require.Equal(t, exitOK, b.run(t, "explain", "1811"), b.errors)
	require.Contains(t, b.out, "document retry --error-code 1811 --dry-run")
	require.Contains(t, b.errors,
		"1811 may come from several: sqlite is the local database SQLite, sqlserver is SQL Server")
	require.Equal(t, exitOK, b.run(t, "explain", "document"), b.errors)
	require.Contains(t, b.out, "document retry --error-code 2628 --dry-run")
	require.NotRegexp(t, `retry --error-code \S*( other|\*|-)`, b.out)
}

func TestExplainAKindAndEverything(t *testing.T) {
	b := newBench(t)
	quota := b.explained(t, "quota")
	require.NotEmpty(t, quota)
	for _, e := range quota {
		require.Equal(t, fault.Quota, e.Kind)
		require.Equal(t, fault.Nothing, e.Spends)
	}

	all := b.explained(t)
	require.Len(t, all, len(open.Faults()))
	kinds, adapters := map[fault.Kind]bool{}, map[string]bool{}
	for _, e := range all {
		kinds[e.Kind], adapters[e.Adapter] = true, true
		for _, said := range []string{e.Code, string(e.Scope), e.Spends, e.Next, e.Reason, e.Source} {
			require.NotEmpty(t, said, "%+v", e)
		}
		require.Equal(t, fault.ScopeOf(e.Kind), e.Scope)
		if e.Scope == fault.ScopeDependency {
			require.NotEqual(t, fault.OneRetry, e.Spends, "promise G5: %s %s", e.Adapter, e.Code)
		}
	}
	require.Len(t, kinds, len(fault.Rules()), "every kind has a code")
	require.Len(t, adapters, 7)

	require.Equal(t, exitOK, b.run(t, "explain"))
	require.Regexp(t, `(?m)^ADAPTER\s+CODE\s+KIND\s+SCOPE\s+SPENDS\s+MEANING`, b.out)
	require.Equal(t, len(all)+1, strings.Count(b.out, "\n"))
}
