package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fake answers for func and az. The lists of functions are files of testdata, in the form that func prints
// (docs/facts.md F107); the last one is repeated.
type fake struct {
	t      *testing.T
	lists  []string
	status map[string]string // of a function; others have no errors
	noAz   error
	asked  int
	waited time.Duration
}

func (f *fake) run(_ context.Context, _ program, name string, args ...string) ([]byte, error) {
	f.t.Helper()
	line := strings.Join(args, " ")
	switch {
	case name == "func":
		require.Equal(f.t, "azure functionapp list-functions myapp", line)
		f.asked++
		return os.ReadFile(filepath.Join("testdata", f.lists[min(f.asked, len(f.lists))-1]))
	case f.noAz != nil:
		return nil, f.noAz
	case strings.HasPrefix(line, "resource list"):
		return []byte(`[{"id": "/subscriptions/s/resourceGroups/g/providers/Microsoft.Web/sites/myapp"}]`), nil
	}
	_, rest, found := strings.Cut(line, "/sites/myapp/hostruntime/admin/functions/")
	require.True(f.t, found, line)
	function, _, found := strings.Cut(rest, "/status?api-version=")
	require.True(f.t, found, line)
	if status, set := f.status[function]; set {
		return []byte(status), nil
	}
	return []byte("{}"), nil
}

func (f *fake) check() (out string, err error) {
	c := check{app: "myapp", source: "../..", tool: tool{say: func(line string) {
		out += line + "\n"
	}, run: f.run, wait: func(_ context.Context, d time.Duration) error { f.waited += d; return nil }}}
	err = c.check(f.t.Context())
	return out, err
}

func TestAnAppWithEveryFunctionPasses(t *testing.T) {
	out, err := (&fake{t: t, lists: []string{"all.txt"}}).check()
	require.NoError(t, err)
	require.Equal(t, "myapp has all 9 functions, and none of them has an error\n", out)
}

func TestAFunctionThatTheHostLeftOutIsNamed(t *testing.T) {
	f := &fake{t: t, lists: []string{"none.txt", "left_out.txt"}}
	_, err := f.check()
	require.ErrorContains(t, err, "BatchWorker is missing")
	require.ErrorContains(t, err, "CommitResults is missing")
	require.NotContains(t, err.Error(), "Health")
	require.Equal(t, within, f.waited, "a host that is still starting has its time")
}

func TestAHostThatIsStillStartingIsWaitedFor(t *testing.T) {
	f := &fake{t: t, lists: []string{"none.txt", "left_out.txt", "all.txt"}}
	out, err := f.check()
	require.NoError(t, err)
	require.Equal(t, 3, f.asked)
	require.Contains(t, out, "myapp has no BatchWorker, CommitResults yet")
}

func TestTheErrorOfAFunctionOnTheListIsNamed(t *testing.T) {
	const text = "Microsoft.Azure.WebJobs.Host: Error indexing method 'Functions.CommitResults'. Microsoft.Azure.WebJobs.Host: '%LEASE_PREFIX%' does not resolve to a value."
	_, err := (&fake{t: t, lists: []string{"all.txt"}, status: map[string]string{"CommitResults": `{"errors": ["` + text + `"]}`}}).check()
	require.ErrorContains(t, err, "CommitResults: "+text)
	require.NotContains(t, err.Error(), "Health")
}

func TestWithoutAzItSaysWhatWasNotLookedUp(t *testing.T) {
	out, err := (&fake{t: t, lists: []string{"all.txt"}, noAz: errors.New("az is not on the PATH")}).check()
	require.NoError(t, err)
	require.Contains(t, out, "has all 9 functions")
	require.Contains(t, out, "not looked up: az is not on the PATH")
	_, err = (&fake{t: t, lists: []string{"left_out.txt"}, noAz: errors.New("az is not on the PATH")}).check()
	require.ErrorContains(t, err, "CommitResults is missing")
}

func TestAListThatCannotBeHadFails(t *testing.T) {
	c := check{app: "myapp", source: "../..", tool: tool{
		run: func(context.Context, program, string, ...string) ([]byte, error) {
			return nil, errors.New("no such app")
		},
	}}
	require.ErrorContains(t, c.check(t.Context()), "no such app")
	c.source = t.TempDir()
	require.ErrorContains(t, c.check(t.Context()), "no functions/*/function.json")
}
