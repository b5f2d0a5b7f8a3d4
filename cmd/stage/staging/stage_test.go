package staging

import (
	"debug/elf"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/cmd/internal/stackfile"
)

// staged builds the repository for the host's platform.
func staged(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "root")
	require.NoError(t, Build(t.Context(), Options{Source: "../../..", Dir: dir, GOOS: "linux", GOARCH: "amd64"}))
	return dir
}

func TestAStagedRootFitsTheHost(t *testing.T) {
	dir := staged(t)
	info, err := os.Stat(filepath.Join(dir, Binary))
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&0o111, "docs/facts.md F31: otherwise the host looks in PATH")
	var names []string
	require.NoError(t, fs.WalkDir(os.DirFS(dir), ".", func(path string, _ fs.DirEntry, err error) error {
		names = append(names, path)
		return err
	}))
	want := []string{".", ".funcignore", Binary, "host.json"}
	for _, name := range []string{
		"BatchDeadLetter", "BatchManager", "BatchWorker", "CommitResults", "Health", "Ops",
		"RecoverRetries", "RunDeadLetter", "Ui",
	} {
		want = append(want, name, name+"/function.json")
	}
	for _, own := range []string{Mapping, "local.settings.json"} { // a developer's own
		if _, err := os.Stat(filepath.Join("../../..", own)); err == nil {
			want = append(want, own)
		}
	}
	require.ElementsMatch(t, want, names)

	binary, err := elf.Open(filepath.Join(dir, Binary))
	require.NoError(t, err)
	defer func() { require.NoError(t, binary.Close()) }()
	require.Equal(t, elf.EM_X86_64, binary.Machine)
	libraries, err := binary.ImportedLibraries()
	require.NoError(t, err)
	require.Empty(t, libraries, "it must run on any image")

	require.NoError(t, Build(t.Context(), Options{Source: "../../..", Dir: dir}), "again, over what is there")
	left, err := filepath.Glob(filepath.Join(filepath.Dir(dir), ".stage-*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// small is a source with one function and an empty handler.
func small(t *testing.T) string {
	t.Helper()
	source := filepath.Join(t.TempDir(), "src")
	for _, f := range []string{"go.mod", "go.sum", ".funcignore", "host.json", "functions/Health/function.json"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(source, f)), 0o750))
		require.NoError(t, copyFile(filepath.Join("../../..", f), filepath.Join(source, f)))
	}
	require.NoError(t, os.CopyFS(filepath.Join(source, "cmd", "handler"), os.DirFS("testdata/empty")))
	return source
}

// The settings of running servers replace the user's own, but not beside a host that divides the feed with another one.
func TestOnlyServersWithoutAHostGiveTheirSettings(t *testing.T) {
	source, state := small(t), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(source, localSettings), []byte("the user's"), 0o600))
	settings := filepath.Join(state, "s.json")
	require.NoError(t, os.WriteFile(settings, []byte("the servers'"), 0o600))
	me, err := stackfile.Identify(t.Context(), "run", os.Getpid())
	require.NoError(t, err)
	staged := func(state string) string {
		require.NoError(t, Build(t.Context(), Options{Source: source, State: state}))
		text, err := os.ReadFile(filepath.Join(source, ".stage", localSettings))
		require.NoError(t, err)
		return string(text)
	}
	require.Equal(t, "the user's", staged(state), "nothing runs")
	require.NoError(t, stackfile.Write(state, stackfile.Stack{Runner: me}))
	require.ErrorContains(t, Build(t.Context(), Options{Source: source, State: state}), "still starting",
		"its settings are not written yet")
	require.NoError(t, stackfile.Write(state, stackfile.Stack{Runner: me, Settings: settings}))
	require.Equal(t, "the servers'", staged(state))
	require.Equal(t, "the user's", staged(""), "not asked for, as in make publish")
	require.NoError(t,
		stackfile.Write(state, stackfile.Stack{Runner: me, Settings: settings, Functions: "http://127.0.0.1:7071"}))
	require.Equal(t, "the user's", staged(state), "make run")
	me.Started = "another time"
	require.NoError(t, stackfile.Write(state, stackfile.Stack{Runner: me, Settings: settings}))
	require.Equal(t, "the user's", staged(state), "they were killed")
}

// What is published may be taken from the root by other tools than func, which leaves the file out by itself.
func TestARootToPublishHasNoLocalSettings(t *testing.T) {
	source := small(t)
	require.NoError(t, os.WriteFile(filepath.Join(source, localSettings), []byte(`{"Values":{"KEY":"secret"}}`), 0o600))
	s := &module{t, source}
	s.init()
	s.commit()
	file := filepath.Join(source, ".stage", localSettings)
	require.NoError(t, Build(t.Context(), Options{Source: source}))
	require.FileExists(t, file)
	require.NoError(t, Build(t.Context(), Options{Source: source, Publish: true}))
	require.NoFileExists(t, file)
}

func TestADeploymentsOwnMappingGoesAlong(t *testing.T) {
	source := small(t)
	const columns = `{"IVCE_DTL": {"key": "ID"}}`
	require.NoError(t, os.WriteFile(filepath.Join(source, Mapping), []byte(columns), 0o600))
	require.NoError(t, Build(t.Context(), Options{Source: source}))
	staged, err := os.ReadFile(filepath.Join(source, ".stage", "mapping.json"))
	require.NoError(t, err)
	require.Equal(t, columns, string(staged))
}

func TestASourceWithoutFunctionsIsRefused(t *testing.T) {
	work := t.TempDir()
	for _, f := range []string{"host.json", ".funcignore"} {
		require.NoError(t, copyFile(filepath.Join("../../..", f), filepath.Join(work, f)))
	}
	require.ErrorContains(t, Build(t.Context(), Options{Source: work}), "no functions/*/function.json")
	require.NoDirExists(t, filepath.Join(work, ".stage"))
}

func TestARootThatCannotBeBuiltIsNotLeftBehind(t *testing.T) {
	work := t.TempDir()
	for _, f := range []string{"host.json", ".funcignore", "functions/Health/function.json"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(work, f)), 0o750))
		require.NoError(t, copyFile(filepath.Join("../../..", f), filepath.Join(work, f)))
	}
	require.ErrorContains(t, Build(t.Context(), Options{Source: work}), "go build ./cmd/handler",
		"what the Go tool says is passed on")
	entries, err := os.ReadDir(work)
	require.NoError(t, err)
	require.Len(t, entries, 3, "only the source is left")
}
