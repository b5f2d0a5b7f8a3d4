// Package kusto_test reads the alerts with Microsoft's language service of KQL: nothing here can run them. `make
// sdkchecks` installs it and runs this.
package kusto_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/events"
)

// read gives the errors of each file. columns are those that the table has besides its own.
func read(t *testing.T, columns string, files ...string) map[string][]string {
	t.Helper()
	if _, err := os.Stat("node_modules/@kusto/language-service-next"); err != nil {
		t.Skip("the language service is not installed: make sdkchecks (it needs Node.js and npm)")
	}
	var stderr bytes.Buffer
	node := exec.CommandContext(t.Context(), "node", append([]string{"check.mjs", columns}, files...)...)
	node.Stderr = &stderr
	out, err := node.Output()
	require.NoError(t, err, "%s%s", out, stderr.String())
	errs := map[string][]string{}
	for lines := json.NewDecoder(bytes.NewReader(out)); lines.More(); {
		var line struct {
			File   string
			Errors []string
		}
		require.NoError(t, lines.Decode(&line))
		errs[line.File] = line.Errors
	}
	require.Len(t, errs, len(files))
	return errs
}

// eventColumns declares a column e_NAME for each member of a line, with its type in the table of events.
func eventColumns() string {
	columns := ", e_event: string, e_message: string"
	for f := range reflect.TypeFor[events.Fields]().Fields() {
		kind := map[reflect.Kind]string{
			reflect.String: "string", reflect.Int: "long", reflect.Int64: "long", reflect.Bool: "bool",
			reflect.Struct: "datetime",
		}[f.Type.Kind()]
		columns += fmt.Sprintf(", e_%s: %s", f.Tag.Get("log"), cmp.Or(kind, "dynamic"))
	}
	return columns
}

// bound gives a file in which each member that a query reads is a column, so that the language service knows those that
// exist.
func bound(t *testing.T, file string) string {
	t.Helper()
	query, err := os.ReadFile(file)
	require.NoError(t, err)
	const parsed = "| extend e = parse_json(message)\n"
	require.Contains(t, string(query), parsed, file)
	columns := regexp.MustCompile(`\be\.(\w+)`).ReplaceAllString(strings.Replace(string(query), parsed, "", 1), "e_$1")
	copied := filepath.Join(t.TempDir(), filepath.Base(file))
	require.NoError(t, os.WriteFile(copied, []byte(columns), 0o600))
	return copied
}

// Each query is KQL, and each member that it reads is a field of the table of events.
func TestTheAlertsAreKQL(t *testing.T) {
	files, err := filepath.Glob("../../../deploy/alerts/*.kql")
	require.NoError(t, err)
	require.Len(t, files, 3)
	for _, file := range files {
		for read, errs := range read(t, eventColumns(), file, bound(t, file)) {
			require.Empty(t, errs, read)
		}
	}
}

func TestTheLanguageServiceFindsMistakes(t *testing.T) {
	var files []string
	dir := t.TempDir()
	for name, query := range map[string]string{
		"column":   `traces | where texts == "x"`,
		"function": `traces | extend e = parse_jsn(message)`,
		"keyword":  `traces | summarize by message count()`,
		"field":    `traces | where e_severty == "wake"`,
		"type":     `traces | where timestamp > "yesterday" + 1`,
	} {
		files = append(files, filepath.Join(dir, name+".kql"))
		require.NoError(t, os.WriteFile(files[len(files)-1], []byte(query), 0o600))
	}
	for file, errs := range read(t, eventColumns(), files...) {
		require.NotEmpty(t, errs, file)
	}
}
