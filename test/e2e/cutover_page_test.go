package e2e_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// section is one step of the page and its commands.
type section struct {
	title    string
	commands []string
}

// commandsOf reads the shell blocks of a page by its headings. Headings without a command are left out.
func commandsOf(t *testing.T, path string) []section {
	t.Helper()
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	var all []section
	shell := false
	for line := range strings.Lines(string(page)) {
		line = strings.TrimSpace(line)
		title, heading := strings.CutPrefix(line, "## ")
		switch {
		case heading:
			all = append(all, section{title: title})
		case line == "```sh":
			shell = true
		case line == "```":
			shell = false
		case shell && line != "" && !strings.HasPrefix(line, "#"):
			require.NotEmpty(t, all)
			all[len(all)-1].commands = append(all[len(all)-1].commands, line)
		}
	}
	return slices.DeleteFunc(all, func(s section) bool { return len(s.commands) == 0 })
}

func titles(steps []section) []string {
	var all []string
	for _, s := range steps {
		all = append(all, s.title)
	}
	return all
}

// run runs the commands of a step.
func (r *rehearsal) run(step section) {
	r.t.Helper()
	for _, c := range step.commands {
		r.command(c)
	}
}

// command runs one command of the page. sqlwriterctl is the real one; what switches apps switches those of the
// rehearsal. A command that this does not know fails: the page then says more than the test does.
func (r *rehearsal) command(line string) {
	r.t.Helper()
	r.t.Logf("$ %s", line)
	const group = ` --name $APP --resource-group $GROUP`
	settings, configures := strings.CutPrefix(line, "make azure GROUP=$GROUP ")
	arguments, ctl := strings.CutPrefix(line, "sqlwriterctl ")
	switch {
	case ctl:
		cmd := r.ctl(r.t.Context(), strings.Fields(arguments)...)
		var notes strings.Builder
		cmd.Stderr = &notes
		out, err := cmd.Output()
		require.NoError(r.t, err, notes.String())
		r.answer, r.answers[line] = string(out), string(out)
	case configures:
		for _, s := range strings.Fields(settings) {
			name, value, ok := strings.Cut(s, "=")
			require.True(r.t, ok && (name == "MODE" || name == "LEASE_PREFIX"), s)
			r.settings[name] = value
		}
	case line == "az functionapp start"+group:
		require.Nil(r.t, r.app)
		require.False(r.t, r.old.running && r.settings["MODE"] == "live", "two writers at once are never right")
		r.app = startApplication(r.t, r.settings)
	case line == "az functionapp stop"+group:
		if r.app != nil {
			r.app.stop()
			r.app = nil
		}
	case line == "az webapp stop --name $OLD_APP --resource-group $OLD_GROUP":
		r.old.running = false
	case line == "az webapp start --name $OLD_APP --resource-group $OLD_GROUP":
		require.Nil(r.t, r.app)
		r.old.start()
	case line == "curl -fsS --retry 30 --retry-all-errors https://$APP.azurewebsites.net/api/health":
		require.Eventually(r.t, func() bool {
			return r.app.health()["status"] == "ready"
		}, patience, 50*time.Millisecond, "%v", r.app.health())
	default:
		require.Fail(r.t, "docs/cutover.md names a command that the rehearsal does not know", line)
	}
}

// ctl is the real sqlwriterctl with the connections in its environment.
func (r *rehearsal) ctl(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, ctlBinary(r.t), args...)
	cmd.Dir = r.t.TempDir()
	for name, value := range r.settings {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.Env = append(cmd.Env, "HOME="+cmd.Dir, "TMPDIR="+cmd.Dir)
	return cmd
}

// ctlBuild is held by the test that builds sqlwriterctl.
var ctlBuild sync.Mutex

// ctlBinary builds sqlwriterctl beside the staged script root, once.
func ctlBinary(t *testing.T) string {
	t.Helper()
	ctlBuild.Lock()
	defer ctlBuild.Unlock()
	path := filepath.Join(filepath.Dir(scriptRoot), "sqlwriterctl")
	if _, err := os.Stat(path); err == nil {
		return path
	}
	out, err := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-o", path,
		"../../cmd/sqlwriterctl").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}
