package arch_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../.."

// tracked lists the repository's files with their contents; without git it is every file but what git would ignore.
func tracked(t *testing.T) map[string][]byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("git lists the files of a checkout, and this is none: %v", err)
	}
	files := map[string][]byte{}
	for name := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		if content, err := os.ReadFile(filepath.Join(root, name)); err == nil { // deleted and not yet committed
			files[name] = content
		}
	}
	return files
}

// Every test that a page names exists: the pages say which test holds which promise.
func TestThePagesNameTestsThatExist(t *testing.T) {
	name, declared := regexp.MustCompile(`\bTest[A-Z]\w+`), regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	exists := map[string]bool{}
	files := tracked(t)
	for file, content := range files {
		if strings.HasSuffix(file, ".go") {
			for _, m := range declared.FindAllSubmatch(content, -1) {
				exists[string(m[1])] = true
			}
		}
	}
	named := 0
	for file, content := range files {
		if !strings.HasSuffix(file, ".md") {
			continue
		}
		for _, m := range name.FindAll(content, -1) {
			named++
			require.True(t, exists[string(m)], "%s names %s, which is no test", file, m)
		}
	}
	require.Greater(t, named, 10)
}

// Nothing in the repository names the machine that it was written on.
func TestNoFileNamesThisMachine(t *testing.T) {
	here, err := filepath.Abs(root)
	require.NoError(t, err)
	home, err := os.UserHomeDir()
	require.NoError(t, err)
	for file, content := range tracked(t) {
		for _, path := range []string{here + "/", home + "/"} {
			require.False(t, bytes.Contains(content, []byte(path)), "%s names %s", file, path)
		}
	}
}
