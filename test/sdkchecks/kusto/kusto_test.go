// Package kusto_test reads the alerts with Microsoft's language service of KQL: nothing here can run them. `make sdkchecks`
// installs it and runs this.
package kusto_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// read gives the errors of each file.
func read(t *testing.T, files ...string) map[string][]string {
	t.Helper()
	if _, err := os.Stat("node_modules/@kusto/language-service-next"); err != nil {
		t.Skip("the language service is not installed: make sdkchecks (it needs Node.js and npm)")
	}
	var stderr bytes.Buffer
	node := exec.CommandContext(t.Context(), "node", append([]string{"check.mjs"}, files...)...)
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

func TestTheAlertsAreKQL(t *testing.T) {
	files, err := filepath.Glob("../../../deploy/alerts/*.kql")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for file, errs := range read(t, files...) {
		require.Empty(t, errs, file)
	}
}

func TestTheLanguageServiceFindsMistakes(t *testing.T) {
	var files []string
	dir := t.TempDir()
	for name, query := range map[string]string{
		"column":   `traces | where texts == "x"`,
		"function": `traces | extend e = parse_jsn(message)`,
		"keyword":  `traces | summarize by message count()`,
		"type":     `traces | where timestamp > "yesterday" + 1`,
	} {
		files = append(files, filepath.Join(dir, name+".kql"))
		require.NoError(t, os.WriteFile(files[len(files)-1], []byte(query), 0o600))
	}
	for file, errs := range read(t, files...) {
		require.NotEmpty(t, errs, file)
	}
}
