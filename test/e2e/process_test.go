package e2e_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"sqlwriter/handlers"
	"sqlwriter/internal/events"
	"sqlwriter/test/emulators/funchost"
	"sqlwriter/test/logcheck"
)

// process is a host with the real handler under it, and what the handler printed.
type process struct {
	*funchost.Host
	t *testing.T

	mu      sync.Mutex
	console []string
}

// launch starts a host of this name, and with it the handler binary; change are settings that this one has otherwise.
// Hosts over one stack share its container, and the ranges of its feed when they have one LEASE_PREFIX.
func (s *stack) launch(name string, change map[string]string) *process {
	s.t.Helper()
	return s.launchFrom(scriptRoot, name, change)
}

// launchFrom is launch with another script root.
func (s *stack) launchFrom(root, name string, change map[string]string) *process {
	s.t.Helper()
	settings := s.settings()
	for setting, value := range change {
		settings[setting] = value
	}
	tune := s.tune()
	tune.StopTimeout = time.Second
	p := &process{t: s.t}
	p.Host = funchost.New(funchost.Options{
		ScriptRoot: root, Settings: settings, Log: zerolog.Nop(), Instance: name, Env: funchost.PlainEnv(),
		Keys: funchost.Keys{
			Master: masterKey, Named: map[string]string{"operator-e2e": functionKey, "reader-monitor": readerKey},
		},
		OnConsole: func(l funchost.ConsoleLine) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.console = append(p.console, l.Text)
			if want, err := logcheck.Level([]byte(l.Text)); err != nil || l.Level != want {
				s.t.Errorf("the host takes for %s, and %v: %s", l.Level, err, l.Text)
			}
		},
		Tune: tune,
	})
	require.NoError(s.t, p.Start(s.t.Context()))
	s.t.Cleanup(func() {
		if err := p.Stop(); err != nil { // only a host that gave up after too many kills ends with an error
			require.Contains(s.t, kinds(p.Host), funchost.HandlerGaveUp, err)
		}
		if s.t.Failed() {
			lines := slices.DeleteFunc(p.lines(), func(l string) bool {
				return strings.Contains(l, `"function":"Health"`)
			})
			for _, l := range lines[max(0, len(lines)-40):] {
				s.t.Log(name + ": " + l)
			}
		}
	})
	select {
	case <-p.Ready():
	case <-time.After(patience):
		require.Fail(s.t, "the host did not become ready")
	}
	return p
}

// lines are what the handler printed so far.
func (p *process) lines() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.console)
}

// logLine is what the tests read of a line of the handler's log.
type logLine struct {
	Time     time.Time `json:"time"`
	Level    string    `json:"level"`
	Event    string    `json:"event"`
	Function string    `json:"function"`
	Document string    `json:"document"`
	Kind     string    `json:"kind"`
	Code     string    `json:"code"`
	Status   int       `json:"http_status"`
	State    string    `json:"state"`
	SQL      int64     `json:"sql_ms"`
}

// log gives the lines of the handler's log that match.
func (p *process) log(match func(logLine) bool) []logLine {
	p.t.Helper()
	var found []logLine
	for _, text := range p.lines() {
		var l logLine
		require.NoError(p.t, json.Unmarshal([]byte(text), &l), text)
		if match(l) {
			found = append(found, l)
		}
	}
	return found
}

// waitForLine waits for a line of the handler's log.
func (p *process) waitForLine(what string, match func(logLine) bool) {
	p.t.Helper()
	require.Eventually(p.t, func() bool {
		return len(p.log(match)) > 0
	}, patience, 20*time.Millisecond, "the log does not say %s", what)
}

// health asks the Health function, as a monitor does.
func (p *process) health() handlers.HealthReport {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet,
		"http://"+p.Address()+"/api/health", http.NoBody)
	require.NoError(p.t, err)
	res, err := http.DefaultClient.Do(req)
	require.NoError(p.t, err)
	defer func() { require.NoError(p.t, res.Body.Close()) }()
	text, err := io.ReadAll(res.Body)
	require.NoError(p.t, err)
	var report handlers.HealthReport
	require.NoError(p.t, json.Unmarshal(text, &report), "%s", text)
	return report
}

// waitHealth waits until Health says what match wants, and gives that.
func (p *process) waitHealth(what string, match func(handlers.HealthReport) bool) handlers.HealthReport {
	p.t.Helper()
	var last handlers.HealthReport
	require.Eventually(p.t, func() bool {
		last = p.health()
		return match(last)
	}, patience, 10*time.Millisecond, "Health does not say %s", what)
	return last
}

// refused gives the HTTP statuses of the failed invocations of CommitResults and how long the slowest of all took.
func (p *process) refused() (statuses []int, slowest time.Duration) {
	began := map[string]time.Time{}
	for _, e := range p.Events(0) {
		if e.Function != "CommitResults" {
			continue
		}
		switch e.Kind { //nolint:exhaustive // only these are about one invocation
		case funchost.InvocationStarted:
			began[e.InvocationID] = e.Time
		case funchost.InvocationSuccess, funchost.InvocationFailed:
			if at, ok := began[e.InvocationID]; ok {
				slowest = max(slowest, e.Time.Sub(at))
			}
			var failed *funchost.InvocationError
			if errors.As(e.Err, &failed) {
				statuses = append(statuses, failed.Status)
			}
		}
	}
	return statuses, slowest
}

// requireNeverRestarted: the handler is the one that the host started first.
func (p *process) requireNeverRestarted() {
	p.t.Helper()
	starts := 0
	for _, k := range kinds(p.Host) {
		if k == funchost.HandlerStarted {
			starts++
		}
	}
	require.Equal(p.t, 1, starts, "the handler was started again")
}

// requireUncounted: no document was charged for anything.
func (s *stack) requireUncounted() {
	s.t.Helper()
	for id, raw := range s.all() {
		var d struct {
			State map[string]any `json:"sql_writer"`
		}
		require.NoError(s.t, json.Unmarshal(raw, &d))
		require.Equal(s.t, 0.0, d.State["retry_count"], "a retry was counted against %s", id)
		require.NotContains(s.t, d.State, "last_error", id)
	}
}

// isOpening reports whether a line says that a dependency could not be opened and was asked.
func isOpening(l logLine) bool { return l.Event == string(events.DependencyNotOpen) }
