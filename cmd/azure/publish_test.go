package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// published is an app to publish to: func, sqlwriterctl and the Go tool, which say what a test wants.
type published struct {
	t        *testing.T
	behind   bool     // the database lacks what this build calls
	uploads  []string // what func says of each upload; empty is success, the last one is repeated
	did      []string
	says     string
	waited   time.Duration
	migrated string
	doctor   error
}

// exited is the error of a program that has ended with a code.
type exited int

func (e exited) Error() string { return "exit status" }
func (e exited) ExitCode() int { return int(e) }

// refusedPackage is what func prints when the platform may not store the package (core-tools issue 4346).
const refusedPackage = "Failed to upload blob package to storage account with Error: Response status code does not indicate success: 403 (This request is not authorized to perform this operation.)."

func (p *published) run(_ context.Context, how program, name string, args ...string) ([]byte, error) {
	line := strings.Join(append([]string{name}, args...), " ")
	p.did = append(p.did, line)
	switch line {
	case "bin/sqlwriterctl migrate status --app myapp", "bin/sqlwriterctl migrate status":
		if p.behind {
			return nil, errors.New("3 migrations are pending")
		}
		return []byte("all there"), nil
	case "bin/sqlwriterctl migrate script --engine sqlserver --app myapp":
		return []byte("-- The set's record.\nDECLARE @hash varchar(12) = '0123456789ab';\n"), nil
	case "go run ./cmd/stage -goos linux -goarch amd64 -publish":
		return nil, nil
	case "func azure functionapp publish myapp --custom --no-build":
		require.Equal(p.t, program{dir: ".stage", shown: true}, how)
		if len(p.uploads) == 0 || p.uploads[0] == "" {
			return nil, nil
		}
		said := p.uploads[0]
		p.uploads = p.uploads[min(1, len(p.uploads)-1):]
		return nil, &failure{err: errors.New("func: exit status 1"), said: said, shown: true}
	case looks:
		require.True(p.t, how.shown)
		return nil, p.doctor
	}
	require.Fail(p.t, line)
	return nil, nil
}

const looks = "bin/sqlwriterctl doctor --app myapp --wait 5m"

func (p *published) publish() error {
	p.t.Helper()
	p.did, p.says = nil, ""
	return publication{migrated: p.migrated, app: "myapp", tool: tool{
		run:  p.run,
		say:  func(line string) { p.says += line + "\n" },
		wait: func(_ context.Context, d time.Duration) error { p.waited += d; return nil },
	}}.publish(p.t.Context())
}

func TestPublish(t *testing.T) {
	t.Setenv("SQL_CONNECTION", "")
	p := &published{t: t}
	require.NoError(t, p.publish())
	require.Equal(t, []string{
		"bin/sqlwriterctl migrate status --app myapp", "go run ./cmd/stage -goos linux -goarch amd64 -publish",
		"func azure functionapp publish myapp --custom --no-build", looks,
	}, p.did)
	require.Contains(t, p.says, "migrate up is not due")
	require.NotContains(t, p.says, "Look at")
	p.doctor = &failure{err: fmt.Errorf("sqlwriterctl: %w", exited(3)), shown: true}
	require.NoError(t, p.publish(), "it is published, and a person has something to look at")
	require.Contains(t, p.says, "Look at what is not ok: bin/sqlwriterctl doctor --app myapp")
	p.doctor = fmt.Errorf("sqlwriterctl: %w", exited(1))
	require.Error(t, p.publish(), "a function is missing, or something else is wrong")
	p.doctor = nil

	t.Setenv("SQL_CONNECTION", "sqlserver://...")
	require.NoError(t, p.publish())
	require.Equal(t, "bin/sqlwriterctl migrate status", p.did[0])
	require.Contains(t, p.says, "the database of SQL_CONNECTION has")
}

func TestNothingIsPublishedBeforeTheDatabaseHasWhatItCalls(t *testing.T) {
	t.Setenv("SQL_CONNECTION", "")
	p := &published{t: t, behind: true}
	err := p.publish()
	require.ErrorContains(t, err, "bin/sqlwriterctl migrate up --app myapp")
	require.Len(t, p.did, 2, "%v", p.did)
	require.Contains(t, p.says, "3 migrations are pending")
	_, set, _ := strings.Cut(err.Error(), "MIGRATED=")
	require.Equal(t, "0123456789ab", set)
	script, err := os.ReadFile("../../internal/store/sqlserver/migrate.go")
	require.NoError(t, err)
	require.Contains(t, string(script), `DECLARE @hash varchar(12) = '" + set.hash`, "the script names it so")

	p.migrated = "000000000000"
	require.ErrorContains(t, p.publish(), "MIGRATED="+set, "another build's")
	p.migrated = set
	require.NoError(t, p.publish())
	require.NotContains(t, p.did, "bin/sqlwriterctl migrate status --app myapp", "a person has said it")
}

func TestRolesAreWaitedFor(t *testing.T) {
	t.Setenv("SQL_CONNECTION", "")
	p := &published{t: t, uploads: []string{refusedPackage, refusedPackage, ""}}
	require.NoError(t, p.publish())
	require.Equal(t, 2*again, p.waited)
	require.Contains(t, p.says, "a role is in force after some minutes")
	p = &published{t: t, uploads: []string{refusedPackage}}
	require.EqualError(t, p.publish(), "func: exit status 1", "what it said was shown")
	require.Equal(t, rolesWithin, p.waited)
	for _, said := range []string{
		"no such app", "Uploading archive...\nResponse status code does not indicate success: 403 (Ip Forbidden).",
	} {
		p = &published{t: t, uploads: []string{said}}
		require.EqualError(t, p.publish(), "func: exit status 1")
		require.Zero(t, p.waited, said)
	}
	require.ErrorContains(t, publication{}.publish(t.Context()), "make publish APP=name")
}
