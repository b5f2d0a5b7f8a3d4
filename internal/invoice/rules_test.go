package invoice_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/test/fill"
)

var update = flag.Bool("update", false, "rewrite docs/rules.md and the goldens from the tables")

// baseDocument is the document that every rule changes: the first example of the requirements, with every member of the
// column table.
var baseDocument = fill.Document(`{
  "id": "2025-12-17 10:30:00.000000-06:00-0001-1421549",
  "_etag": "\"00000000-0000-0000-0000-000000000001\"",
  "_ts": 1765989015,
  "request_details": {"id": "2025-12-17 10:30:00.000000-06:00-0001", "sys_name": "web"},
  "invoice_details_from_rpa": {"IVCE_DTL_UID": 1421549, "IVCE_NUM": "INV-1"},
  "process_output": {
    "manufacturer_name": "THOMAS & BETTS",
    "part_number": "425",
    "unspsc": "39131711",
    "upc": "786210012345",
    "aks_part_number": "AKS-425",
    "cleaned_description": "CONDUIT FITTING",
    "invoice_line_status": "RC-AI",
    "data_verified": false,
    "web_search_url": "https://example.com/425",
    "manufacturer_name_confidence": 0.95,
    "part_number_confidence": 0.9,
    "unspsc_confidence": 0.85,
    "stage": "web_search",
    "manufacturer_name_stage": "lookup",
    "part_number_stage": "web_search",
    "unspsc_stage": "classifier",
    "processing_started_at": "2025-12-17 10:30:01.000000-06:00",
    "processing_completed_at": "2025-12-17 10:30:09.500000-06:00"
  },
  "post-processing": {"duplicate_detail_uids": []},
  "sql_writer": {"status": "pending", "retry_count": 0}
}`)

// rulesNow is the clock of the rules: five minutes after the request.
func rulesNow() time.Time { return time.Date(2025, 12, 17, 16, 35, 0, 0, time.UTC) }

// rule is one row of docs/rules.md and one test.
type rule struct {
	name string
	// in is merged into the base document; without removes a member; old with in replaces a text of the base document.
	// «x*101» means 101 times x.
	in, without, old string
	// then is the result: written, retry <code>, failed <code>, not recorded <code>, or the Eligibility of a document
	// that is left alone.
	then string
	// sql is a list of "name = value", joined by "; ". See facts.
	sql string
	why string
}

// group is one section of docs/rules.md.
type group struct {
	id    string
	rules []rule
}

func ruleGroups() []group {
	return []group{
		{"whole", wholeRules()},
		{"environment", environmentRules()},
		{"state", stateRules()},
		{"ids", idRules()},
		{"duplicates", duplicateRules()},
		{"version", versionRules()},
		{"text", textRules()},
		{"status", statusRules()},
		{"numbers", numberRules()},
		{"flags", flagRules()},
		{"times", timeRules()},
	}
}

func TestRules(t *testing.T) {
	for _, g := range ruleGroups() {
		for _, r := range g.rules {
			t.Run(g.id+"/"+r.name, func(t *testing.T) {
				require.NotEmpty(t, r.why, "a rule without a reason is a guess")
				d, err := invoice.Reader{}.Read(r.document(t), rulesNow())
				require.Equal(t, r.then, resultOf(d, err), "problem: %v, error: %v", d.Problem, err)
				if err != nil {
					require.Empty(t, r.sql)
					return
				}
				require.Equal(t, r.sql, facts(t, d, r.sql))
				require.Equal(t, d.Problem == nil,
					strings.HasPrefix(r.then, "retry") == strings.HasPrefix(r.then, "failed"))
			})
		}
	}
}

// document returns the rule's document.
func (r rule) document(t testing.TB) []byte {
	in := expand(r.in)
	switch {
	case r.old != "":
		require.Contains(t, baseDocument, r.old)
		return []byte(strings.Replace(baseDocument, r.old, in, 1))
	case r.without != "":
		return without(t, []byte(baseDocument), strings.Split(r.without, "."))
	}
	return overlay(t, []byte(baseDocument), []byte(in))
}

// expand replaces «x*3» by xxx.
func expand(s string) string {
	return regexp.MustCompile(`«(.+?)\*(\d+)»`).ReplaceAllStringFunc(s, func(m string) string {
		what, times, _ := strings.Cut(strings.Trim(m, "«»"), "*")
		n, _ := strconv.Atoi(times)
		return strings.Repeat(what, n)
	})
}

// overlay merges one JSON object into another. Every value that is not an object replaces the old one, digit for digit.
func overlay(t testing.TB, under, over []byte) []byte {
	var a, b map[string]json.RawMessage
	if json.Unmarshal(under, &a) != nil || json.Unmarshal(over, &b) != nil || a == nil || b == nil {
		return over
	}
	for name, value := range b {
		a[name] = overlay(t, a[name], value)
	}
	merged, err := json.Marshal(a)
	require.NoError(t, err)
	return merged
}

func without(t testing.TB, document []byte, path []string) []byte {
	var members map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(document, &members))
	require.Contains(t, members, path[0])
	if len(path) == 1 {
		delete(members, path[0])
	} else {
		members[path[0]] = without(t, members[path[0]], path[1:])
	}
	b, err := json.Marshal(members)
	require.NoError(t, err)
	return b
}

// resultOf returns the result of a document as rule.then has it.
func resultOf(d invoice.Document, err error) string {
	if err != nil {
		return "not recorded " + fault.CodeOf(err)
	}
	switch turn := d.Eligibility(rulesNow(), "web"); turn {
	case invoice.Eligible:
	default:
		return "left alone: " + string(turn)
	}
	var problem *invoice.Invalid
	switch {
	case d.Problem == nil:
		return "written"
	case errors.As(d.Problem, &problem) && problem.Unreadable:
		return "failed " + fault.CodeOf(d.Problem)
	}
	return "retry " + fault.CodeOf(d.Problem)
}

// facts returns the facts that a row of the table names, in its order.
func facts(t testing.TB, d invoice.Document, names string) string {
	var found []string
	for part := range strings.SplitSeq(names, "; ") {
		name, _, _ := strings.Cut(part, " = ")
		if name != "" {
			found = append(found, name+" = "+fact(t, d, name))
		}
	}
	return strings.Join(found, "; ")
}

func fact(t testing.TB, d invoice.Document, name string) string {
	state := d.State
	if state.ResetByHand() {
		state = state.Afresh()
	}
	switch name {
	case "main line":
		return strconv.FormatInt(d.Main, 10)
	case "duplicates":
		return fmt.Sprint(d.Duplicates)
	case "version":
		return time.UnixMicro(d.Version.US).UTC().Format("2006-01-02 15:04:05.000000Z")
	case "version to be recorded first":
		return strconv.FormatBool(d.NeedsVersion)
	case "read again":
		return strconv.FormatBool(d.RewrittenByHost)
	case "retry_count":
		return strconv.Itoa(state.RetryCount)
	case "postponed":
		return strconv.FormatBool(state.Postponed)
	case "reprocess_count":
		return strconv.Itoa(state.ReprocessCount)
	case "kept":
		return fmt.Sprint(len(state.Extra)) + " unknown members"
	}
	table, column := invoice.Detail, name
	if after, ok := strings.CutPrefix(name, "IVCE_TRKG_MSTR."); ok {
		table, column = invoice.Tracking, after
	}
	for i, c := range invoice.DefaultMapping().Columns() {
		if c.Table == table && c.Name == column {
			return formatValue(d.Values[i])
		}
	}
	require.Fail(t, "the table names an unknown fact", name)
	return ""
}

// formatValue formats a value like SQL; long ones by their length.
func formatValue(v invoice.Value) string {
	const long = 60
	switch {
	case v.Null:
		return "NULL"
	case len(v.Text) > long:
		return fmt.Sprintf("%d bytes", len(v.Text))
	}
	return "'" + v.Text + "'"
}

func docsPath() string { return filepath.Join("..", "..", "docs", "rules.md") }

func TestDocsRulesIsProducedFromTheTable(t *testing.T) {
	functions := template.FuncMap{"columns": renderColumns, "rules": renderRules, "orders": renderOrders}
	page, err := template.New("rules.md.tmpl").Funcs(functions).ParseFiles(filepath.Join("testdata", "rules.md.tmpl"))
	require.NoError(t, err)
	var b strings.Builder
	require.NoError(t, page.Execute(&b, nil))
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(docsPath()), 0o755))
		require.NoError(t, os.WriteFile(docsPath(), []byte(b.String()), 0o644))
	}
	file, err := os.ReadFile(docsPath())
	require.NoError(t, err)
	want, got := strings.Split(b.String(), "\n"), strings.Split(string(file), "\n")
	for i := range min(len(want), len(got)) {
		require.Equal(t, want[i], got[i],
			"docs/rules.md is stale in line %d: go test ./internal/invoice -run Docs -update", i+1)
	}
	require.Len(t, got, len(want), "docs/rules.md is stale")
}

// renderColumns has the default mapping in the words of its file. A column that both tables have stands once.
func renderColumns() string {
	type row struct {
		text string
		in   map[invoice.Table]string
	}
	var rows []row
	for _, c := range invoice.DefaultMapping().Columns() {
		kind := c.Type()
		if len(c.Values) > 0 {
			kind += ": " + strings.Join(c.Values, ", ")
		}
		assumed := strings.NewReplacer("no document names the member; the path is ours", "path",
			"no document names this column; the name is ours", "name",
			"no document names the column or the member; both are ours", "name, path").Replace(c.Assumed)
		text := fmt.Sprintf("| `%s` | `%s` | %s | %s", c.Name, c.From(), kind, cell(c.Meaning))
		i := slices.IndexFunc(rows, func(r row) bool { return r.text == text })
		if i < 0 {
			i, rows = len(rows), append(rows, row{text, map[invoice.Table]string{}})
		}
		rows[i].in[c.Table] = cmp.Or(assumed, "given")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n| Column | From | Type | Meaning | %s | %s |\n|---|---|---|---|---|---|\n",
		invoice.Detail, invoice.Tracking)
	for _, r := range rows {
		detail, tracking := cmp.Or(r.in[invoice.Detail], "-"), cmp.Or(r.in[invoice.Tracking], "-")
		fmt.Fprintf(&b, "%s | %s | %s |\n", r.text, detail, tracking)
	}
	return b.String()
}

func renderRules(id string) (string, error) {
	for _, g := range ruleGroups() {
		if g.id != id {
			continue
		}
		var b strings.Builder
		b.WriteString("| Case | In the document | What happens | Why |\n|---|---|---|---|\n")
		for _, r := range g.rules {
			in := "`` " + cell(r.in) + " ``"
			if text := byPath(r.in); !strings.Contains(text, "`") {
				in = "`" + cell(text) + "`"
			}
			switch {
			case r.without != "":
				in = "no `" + r.without + "`"
			case r.in == "{}":
				in = "(as it is)"
			case r.in == "":
				in = "(nothing at all)"
			}
			becomes := r.then
			if r.sql != "" {
				becomes += ": " + r.sql
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", cell(r.name), in, cell(becomes), cell(r.why))
		}
		return b.String(), nil
	}
	return "", fmt.Errorf("the page asks for unknown rules %q", id)
}

// byPath writes {"a": {"b": 1}} as a.b: 1. Objects with several members stay as they are.
func byPath(in string) string {
	value := in
	var path []string
	for {
		var members map[string]json.RawMessage
		if json.Unmarshal([]byte(value), &members) != nil || len(members) != 1 {
			break
		}
		for name, inner := range members {
			path, value = append(path, name), string(inner)
		}
	}
	if len(path) == 0 {
		return in
	}
	return strings.Join(path, ".") + ": " + value
}

// cell escapes a text for a Markdown table.
func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;").Replace(strings.ToValidUTF8(s, `\xff`))
}
