package arch_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// unraced are packages with goroutines that the race detector leaves out.
var unraced = []string{
	"cmd/local",              // starts processes
	"test/outage",            // as well
	"test/browser",           // as well
	"test/mutants",           // as well
	"test/conformance",       // the suites: they run in the packages of the adapters
	"test/inmem",             // an adapter of tests, used in commit, run and ops
	"test/spies",             // as well, in run and scenario
	"test/sqlservertest",     // opens a server for tests
	"test/sqlitetest",        // makes files for tests
	"test/mapping",           // reads a file once
	"test/emulators/azurite", // starts a process
}

// `make race` watches each package that starts goroutines or guards something from them.
func TestRacedPackagesAreThoseWithGoroutines(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	require.NoError(t, err)
	list := regexp.MustCompile(`(?m)^RACED := (.*)$`).FindSubmatch(makefile)
	require.NotNil(t, list)
	found := map[string]bool{}
	require.NoError(t, filepath.WalkDir("../..", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() &&
			(d.Name() == "node_modules" || d.Name() == "testdata" ||
				strings.HasPrefix(d.Name(), ".") && d.Name() != ".."):
			if file == "../.." {
				return nil
			}
			return fs.SkipDir
		case strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, "_test.go") && concurrent(t, file):
			found[path.Dir(strings.TrimPrefix(filepath.ToSlash(file), "../../"))] = true
		}
		return nil
	}))
	for _, p := range unraced {
		require.True(t, found[p], p)
		delete(found, p)
	}
	var want []string
	for p := range found {
		want = append(want, "./"+p)
	}
	slices.Sort(want)
	require.Equal(t, want, strings.Fields(string(list[1])))
}

// concurrent says whether a file has a go statement, or imports what guards memory from goroutines.
func concurrent(t *testing.T, file string) bool {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	require.NoError(t, err)
	for _, i := range parsed.Imports {
		if slices.Contains([]string{`"sync"`, `"sync/atomic"`, `"golang.org/x/sync/errgroup"`}, i.Path.Value) {
			return true
		}
	}
	starts := false
	ast.Inspect(parsed, func(n ast.Node) bool {
		_, is := n.(*ast.GoStmt)
		starts = starts || is
		return !starts
	})
	return starts
}
