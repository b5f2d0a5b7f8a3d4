package reconcile

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite docs/findings.md from the table")

func TestProducedFindingsPage(t *testing.T) {
	const path = "../../docs/findings.md"
	page, err := template.New("findings.md.tmpl").Funcs(template.FuncMap{
		"meanings": meaningsTable, "rules": rulesTable, "states": statesTable, "subjects": sections,
		"settled": func() int { return int(settled / time.Minute) },
	}).ParseFiles(filepath.Join("testdata", "findings.md.tmpl"))
	require.NoError(t, err)
	var b strings.Builder
	require.NoError(t, page.Execute(&b, nil))
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o600))
		require.NoError(t, os.Chmod(path, 0o644))
	}
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, b.String(), string(got), "make update rewrites it")
}

func meaningsTable(findings bool) string {
	var b strings.Builder
	if findings {
		b.WriteString("| class | means | do | by itself |\n|---|---|---|---|\n")
	} else {
		b.WriteString("| class | means | do |\n|---|---|---|\n")
	}
	for _, m := range Meanings() {
		if m.Finding != findings {
			continue
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |", m.Class, m.Means, m.Do)
		if findings {
			fmt.Fprintf(&b, " %s |", orDash(m.Mends))
		}
		b.WriteString("\n")
	}
	return b.String()
}

type section struct {
	Subject      Subject
	Title, Intro string
}

func sections() []section {
	return []section{
		{SubjectLine, "A line of the ledger", "With the document that its ledger row names."},
		{
			SubjectLink, "A document and one of its lines",
			"The main line and each duplicate. The ledger may name another document.",
		},
		{
			SubjectLeft, "A line that the ledger's document does not name",
			"With the newest committed document that names it; *other* means that there is none.",
		},
	}
}

// rulesTable leaves out what cannot be, and a column that says "any" in every row.
func rulesTable(s Subject) string {
	rows := [][]string{{"document", "ledger", "rows", "result", "by itself", "because"}}
	for _, r := range Rules() {
		if r.Subject != s || r.Impossible {
			continue
		}
		mends := "-"
		if r.Mends {
			mends = "written again"
		}
		rows = append(rows, []string{anyOf(r.Documents), anyOf(r.Ledgers), anyOf(r.Rows), "`" + string(r.Class) + "`", mends, r.Because})
	}
	var b strings.Builder
	for i, row := range rows {
		var cells []string
		for column, cell := range row {
			if slices.ContainsFunc(rows[1:], func(r []string) bool { return r[column] != "any" && r[column] != "-" }) {
				cells = append(cells, cell)
			}
		}
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
		if i == 0 {
			b.WriteString(strings.Repeat("|---", len(cells)) + "|\n")
		}
	}
	return b.String()
}

func anyOf[S ~string](list []S) string {
	if len(list) == 0 {
		return "any"
	}
	return strings.Join(texts(list), ", ")
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// statesTable has each state with its meaning.
func statesTable() string {
	var b strings.Builder
	for _, s := range []struct {
		of    string
		names []string
		means map[string]string
	}{
		{"document", texts(docStates()), map[string]string{
			"other":            "waits, failed, does not exist, or is left alone: it promises nothing about its lines",
			"committed":        "committed after the adoption",
			"committed_before": "committed before the adoption, or at a time that cannot be read",
			"unordered":        "committed, without a version or with one from the future: only another writer does that",
			"manual":           "a person said that its lines were repaired by hand, and the audit log has it",
			"unaudited":        "it says so, and the audit log does not",
		}},
		{"ledger", texts(ledgerStates()), map[string]string{
			"none": "no row", "same": "this document, this content", "other": "this document, other content",
			"marked": "this document's failure mark",
			"newer":  "a newer document", "older": "an older document",
			"unknown": "this document, and its content cannot be compared: adopted without proof, or a mapping that is not comparable",
			"dropped": "a committed document that does not name the line",
			"lost":    "a document that is gone; or as dropped, and a person or another writer made it committed",
		}},
		{"rows", texts(rowStates()), map[string]string{
			"same": "both rows are as written", "reviewed": "only the status differs, and no document gives such a one",
			"edited":      "a value other than the status differs",
			"no_tracking": "no row in IVCE_TRKG_MSTR, the other as written", "missing": "no row in IVCE_DTL",
			"archived": "the same, of a line written before `LINES_KEPT_DAYS`",
			"unknown":  "a row is there, and the ledger does not say what was written",
		}},
	} {
		fmt.Fprintf(&b, "Of the %s:\n\n", s.of)
		for _, name := range s.names {
			if s.means[name] == "" {
				panic("no words for the state " + name)
			}
			fmt.Fprintf(&b, "- %s: %s\n", name, s.means[name])
		}
		b.WriteString("\n")
	}
	return b.String()
}
