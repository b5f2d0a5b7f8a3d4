package mapping

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// stranger is the mapping of a deployment that differs in everything: names, types, columns left out, added and kept.
//
//go:embed testdata/stranger.json
var stranger []byte

// InTheStrangersHouse runs tests of this package once more, in a process whose mapping in use is a stranger's.
func InTheStrangersHouse(t *testing.T, tests string) {
	t.Helper()
	switch {
	case os.Getenv(Variable) != "":
		t.Skip("a mapping is named: " + Variable)
	case testing.Short():
		t.Skip("it runs whole suites again")
	}
	path := filepath.Join(t.TempDir(), "stranger.json")
	if err := os.WriteFile(path, stranger, 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run", tests, "-test.v") //nolint:gosec // ourselves
	command.Env = append(os.Environ(), Variable+"="+path)
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}
