package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/cmd/internal/stackfile"
)

// The app is that of the flag, else of the environment, else of the running local stack. A key of one is not sent to
// another's stack.
func TestTheAppComesFromTheFirstPlaceThatNamesOne(t *testing.T) {
	o := newWorking(t, 1).ops
	server := host(t, o, "key-marker")
	b := newBench(t)
	b.runningStack(t, stackfile.Stack{Functions: server.URL, FunctionKey: "key-marker"})
	b.env["SQLWRITER_KEY"] = "of-production"
	require.Equal(t, exitOK, b.run(t, "status"), b.errors)
	require.Contains(t, b.errors, "app: "+server.URL+" (.local/stack.json), with a function key\n")

	b.env["SQLWRITER_APP"], b.env["SQLWRITER_KEY"] = server.URL+"/", "key-marker"
	require.Equal(t, exitOK, b.run(t, "status"), b.errors)
	require.Contains(t, b.errors, "(SQLWRITER_APP), with a function key\n")
	b.env["SQLWRITER_APP"] = "https://elsewhere.example"
	require.Equal(t, exitOK, b.run(t, "status", "--app", server.URL), b.errors)
	require.Contains(t, b.errors, "(--app), with a function key\n")
	require.NotContains(t, b.errors+b.out, "key-marker")
}

// One command says which address was tried, where it is written, why nothing came, and what to do next.
func TestAnAppThatCannotBeAsked(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(web.Close)
	for name, c := range map[string]struct {
		stack      *stackfile.Stack
		killed     bool
		env        map[string]string
		args       []string
		code       int
		what, hint string
	}{
		"no app": {
			code: exitUsage,
			what: "no app is named: there is no --app, no SQLWRITER_APP, and no .local/stack.json of a local stack in this folder",
			hint: "`make run` starts a local stack; another app is named by `sqlwriterctl status --app NAME`",
		},
		"a stack that ended": {
			stack: &stackfile.Stack{Functions: "http://127.0.0.1:1"}, killed: true, code: exitUsage,
			what: "the local stack of .local/stack.json has ended, and no other app is named",
			hint: "`make run` starts it again",
		},
		"servers alone": {
			stack: &stackfile.Stack{}, code: exitUsage,
			what: "the local stack of .local/stack.json has servers only (make servers)",
			hint: "where `func start` runs",
		},
		"a stack whose host is dead": {
			stack: &stackfile.Stack{Functions: "http://127.0.0.1:1", FunctionKey: "k"}, code: exitFailed,
			what: "the app at http://127.0.0.1:1 (.local/stack.json) does not answer: nothing listens there",
			hint: "`make run` starts the local stack",
		},
		"an app that is off": {
			env: map[string]string{"SQLWRITER_APP": "http://127.0.0.1:1", "SQLWRITER_KEY": "k"}, code: exitFailed,
			what: "the app at http://127.0.0.1:1 (SQLWRITER_APP) does not answer: nothing listens there",
			hint: "`curl -fsS http://127.0.0.1:1/api/health` says whether it runs",
		},
		"a wrong name": {
			env:  map[string]string{"SQLWRITER_KEY": "k"},
			args: []string{"--app", "https://nobody.invalid"}, code: exitFailed,
			what: "the app at https://nobody.invalid (--app) does not answer: its name cannot be looked up",
			hint: "`curl -fsS https://nobody.invalid/api/health`",
		},
		"no key": {
			args: []string{"--app", "https://nobody.invalid"}, code: exitUsage,
			what: "the app at https://nobody.invalid (--app) needs a function key or a sign-in",
			hint: "name the app instead of its address (--app NAME), or set SQLWRITER_KEY to a function key of Ops, or",
		},
		"a key that is refused, or an app that is stopped": {
			env: map[string]string{"SQLWRITER_APP": web.URL, "SQLWRITER_KEY": "k"}, code: exitFailed,
			what: "the app answers 403: it is stopped, or the key or the token is not valid for it, or its network rules refuse this machine (" + web.URL + ", SQLWRITER_APP)",
			hint: "check SQLWRITER_KEY",
		},
		"an address without https": {
			env: map[string]string{"SQLWRITER_APP": "http://example.com", "SQLWRITER_KEY": "k"}, code: exitUsage,
			what: "SQLWRITER_APP: the app's address: the credential is not sent over http:// to another machine",
			hint: "see `sqlwriterctl ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.env = c.env
			switch {
			case c.killed:
				b.stack(t, "another boot", *c.stack)
			case c.stack != nil:
				b.runningStack(t, *c.stack)
			}
			// nothing was begun where nothing was asked
			for _, command := range [][]string{{"status"}, {"run", "start", "drain", "--yes", "--why", "x"}} {
				require.Equal(t, c.code, b.run(t, append(command, c.args...)...), b.errors)
				require.Contains(t, b.errors, "error: "+c.what)
				require.Contains(t, b.errors, "\nhint: "+c.hint)
				require.Empty(t, b.out)
			}
		})
	}
}

// Without a key the signed-in user asks. Nobody is signed in here: neither az nor azd is found.
func TestNobodyIsSignedIn(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	b := newBench(t)
	b.env["SQLWRITER_APP"], b.env["SQLWRITER_AUDIENCE"] = "https://nobody.invalid", "api://app"
	require.Equal(t, exitFailed, b.run(t, "status"))
	require.Contains(t, b.errors, "app: https://nobody.invalid (SQLWRITER_APP), as the signed-in user\n")
	require.Contains(t, b.errors, "error: nobody is signed in")
	require.Contains(t, b.errors, "\nhint: sign in with `az login` or `azd auth login`")
}
