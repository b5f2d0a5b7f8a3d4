package examples_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/examples"
)

func TestEveryFileIsListedAndEveryListedFileIsADocument(t *testing.T) {
	found, err := filepath.Glob("*.json")
	require.NoError(t, err)
	var listed []string
	for _, e := range examples.All() {
		listed = append(listed, e.File)
		raw, err := e.JSON()
		require.NoError(t, err)
		var d struct {
			ID string `json:"id"`
		}
		require.NoError(t, json.Unmarshal(raw, &d), e.File)
		require.NotEmpty(t, d.ID, e.File)
		require.NotEmpty(t, e.Shows, e.File)
	}
	require.Equal(t, found, listed, "files and list, both in the order of their names")
}

func TestWhatComesFirstIsListedFirst(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range examples.All() {
		require.True(t, e.After == "" || seen[e.After], "%s comes after %s", e.File, e.After)
		seen[e.File] = true
	}
}

func TestTheRedeliveredDocumentIsTheSameDocument(t *testing.T) {
	first, err := os.ReadFile("03-unicode-and-quotes.json")
	require.NoError(t, err)
	again, err := os.ReadFile("07-redelivered.json")
	require.NoError(t, err)
	require.JSONEq(t, string(first), string(again))
}

func TestReadmeSaysTheSame(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	for _, e := range examples.All() {
		end := "left alone"
		if e.Status != "" {
			end = strings.TrimSuffix(e.Status+" / "+e.Outcome, " / ")
		}
		row := "| [" + e.File + "](" + e.File + ") | " + e.Shows + " | " + end + " |"
		require.Contains(t, string(readme), row)
	}
}
