package staging

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// module is a small module of the same shape as this one, in a folder of its own; its handler prints its stamp.
type module struct {
	t   *testing.T
	dir string
}

func newModule(t *testing.T, dir string) *module {
	for _, name := range []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"} { // set by a hook that runs the tests
		t.Setenv(name, "")
		require.NoError(t, os.Unsetenv(name))
	}
	t.Setenv("LC_ALL", "C")
	s := &module{t, dir}
	s.write("go.mod", "module sqlwriter\n\ngo 1.26\n")
	s.write("README.md", "one")
	s.write("internal/app/app.go", "package app\n\nvar stamp string\n\nfunc Version() string { return stamp }\n")
	s.write("cmd/handler/main.go",
		"package main\n\nimport \"sqlwriter/internal/app\"\n\nfunc main() { print(app.Version()) }\n")
	s.write("mapping.json", "{}")
	s.write(".gitignore", "/mapping.json\n/unpacked/\n")
	return s
}

func (s *module) write(name, text string) {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	require.NoError(s.t, os.MkdirAll(filepath.Dir(path), 0o750))
	require.NoError(s.t, os.WriteFile(path, []byte(text), 0o600))
}

// git runs git with a fixed author, without this machine's settings.
func (s *module) git(args ...string) string {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), "git",
		append([]string{"-c", "user.name=n", "-c", "user.email=e", "-c", "commit.gpgsign=false"}, args...)...)
	cmd.Dir = s.dir
	out, err := cmd.CombinedOutput()
	require.NoError(s.t, err, "%s", out)
	return strings.TrimSpace(string(out))
}

// init makes the module a repository. The tests need Go and Node only, so git may be absent.
func (s *module) init() {
	s.t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		s.t.Skip("no git on the PATH: only a source without one was tried")
	}
	s.git("init", "--quiet")
}

func (s *module) commit() (commit string) {
	s.t.Helper()
	s.git("add", ".")
	s.git("commit", "--quiet", "--message", "m")
	return s.git("rev-parse", "--short=12", "HEAD")
}

// stamp builds the handler and returns its stamp.
func (s *module) stamp() string {
	s.t.Helper()
	path := filepath.Join(s.t.TempDir(), Binary)
	require.NoError(s.t, compile(s.t.Context(), Options{Source: s.dir}, path))
	out, err := exec.CommandContext(s.t.Context(), path).CombinedOutput()
	require.NoError(s.t, err)
	return string(out)
}

func TestTheHandlersVersionIsGitDescribe(t *testing.T) {
	s := newModule(t, t.TempDir())
	require.Empty(t, s.stamp(), "no git: app.Version takes the content")
	s.init()
	require.Empty(t, s.stamp(), "no commit")
	first := s.commit()
	require.Equal(t, first, s.stamp(), "no tag; what git ignores is no change")
	s.git("tag", "release/1.4'0")
	require.Equal(t, "release-1.4-0-0-g"+first, s.stamp(), "no character that the linker's flags would mistake")
	s.write("README.md", "two")
	second := s.commit()
	require.Equal(t, "release-1.4-0-1-g"+second, s.stamp())

	s.write("README.md", "three")
	require.Equal(t, "release-1.4-0-1-g"+second+"-dirty", s.stamp(), "a file that was changed")
	s.git("checkout", "--quiet", "README.md")
	s.write("internal/app/new.go", "package app\n")
	require.Equal(t, "release-1.4-0-1-g"+second+"-dirty", s.stamp(),
		"a new file, which the compiler takes and git describe does not see")
	require.NoError(t, os.Remove(filepath.Join(s.dir, "internal/app/new.go")))
	s.write("notes.txt", "a developer's own")
	require.Equal(t, "release-1.4-0-1-g"+second, s.stamp(), "no part of the binary")

	require.Empty(t, newModule(t, filepath.Join(s.dir, "unpacked")).stamp(),
		"within somebody else's work tree, whose name is not its own")
}

func TestPublishRefusesABuildWithoutAVersion(t *testing.T) {
	s := newModule(t, t.TempDir())
	publish := func() error {
		return compile(t.Context(), Options{Source: s.dir, Publish: true}, filepath.Join(s.t.TempDir(), Binary))
	}
	require.ErrorIs(t, publish(), ErrUnnamed)
	require.ErrorContains(t, publish(), "publish from a git clone")
	s.init()
	require.ErrorContains(t, publish(), "git ls-files: exit status", "git's own words")
	require.ErrorIs(t, publish(), ErrUnnamed)
	s.commit()
	require.NoError(t, publish())
	t.Setenv("PATH", t.TempDir())
	require.ErrorIs(t, publish(), ErrUnnamed, "no git on the PATH")
}
