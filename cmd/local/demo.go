package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"sqlwriter/cmd/internal/stackfile"
	"sqlwriter/cmd/local/internal/term"
	"sqlwriter/cmd/local/sample"
	"sqlwriter/internal/app/open"
	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/config"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/timer"
)

// demoCommand breaks the running local stack on purpose. It works on no other stack.
type demoCommand struct {
	State       string          `help:"Folder of the stack's state (default .local)." placeholder:"DIR"`
	SQLOff      demoSQLOff      `cmd:"" name:"sql-off" help:"Switch SQL off for a while and watch the flow."`
	KillHandler demoKillHandler `cmd:"" name:"kill-handler" help:"Kill the handler process with SIGKILL; the host starts another."`
	BadDocument demoBadDocument `cmd:"" name:"bad-document" help:"Submit a document whose line does not exist, and show the result."`
}

// demo is a running stack and the settings of its handler.
type demo struct {
	stackfile.Stack
	out    *term.Output
	config config.Config
}

// find finds the running stack of `make run`.
func (c *demoCommand) find(ctx context.Context) (*demo, error) {
	if c.State != "" {
		return findStack(ctx, c.State)
	}
	root, err := repositoryRoot()
	if err != nil {
		return nil, err
	}
	return findStack(ctx, filepath.Join(root, stackfile.Dir))
}

func findStack(ctx context.Context, dir string) (*demo, error) {
	stack, running, err := stackfile.Read(ctx, dir)
	if err != nil || !running || stack.Functions == "" {
		return nil, errors.New("demo needs the local stack: start it with make run")
	}
	settings, err := readSettings(stack.Settings)
	return &demo{stack, term.New(os.Stdout), configOf(settings)}, err
}

type demoSQLOff struct {
	For time.Duration `arg:"" optional:"" default:"10s" help:"How long, such as 30s."`
}

// Run asks the stack to switch SQL off, and prints changes of the flow. The stack switches it on again after the time, and
// when this process ends.
func (c *demoSQLOff) Run(ctx context.Context, of *demoCommand) error {
	d, err := of.find(ctx)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("%s/sql-off?for=%s", d.Control, c.For), http.NoBody)
	if err != nil {
		return err
	}
	off, err := http.DefaultClient.Do(request) // until its end, also that of this process, SQL is off
	if err != nil {
		return err
	}
	defer func() { _ = off.Body.Close() }()
	if off.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(off.Body, 1<<10))
		return errors.New(string(bytes.TrimSpace(said)))
	}
	d.out.Linef("SQL is off for %v: connections are refused, and documents that arrive now wait. In another terminal: bin/sqlwriterctl status", c.For)
	if err := d.watchFlow(ctx, time.Now().Add(c.For)); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, off.Body); err != nil {
		return fmt.Errorf("the stack ended: %w", err)
	}
	d.out.Linef("SQL is on again; a stopped flow lets one probe through within a minute")
	return d.waitForFlow(ctx)
}

// watchFlow prints each change of the flow until a given time.
func (d *demo) watchFlow(ctx context.Context, until time.Time) error {
	last := ""
	for time.Now().Before(until) {
		if now := d.flow(ctx); now != last {
			last = now
			d.out.Linef("  %s  %s", time.Now().Format(time.TimeOnly), now)
		}
		if timer.Wait(ctx, min(time.Second, max(0, time.Until(until)))) != nil {
			return ctx.Err()
		}
	}
	return nil
}

// waitForFlow waits until the flow is running or ramping up.
func (d *demo) waitForFlow(ctx context.Context) error {
	const timeout = 2 * time.Minute
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("the flow is still stopped after %v", timeout))
	defer cancel()
	last := ""
	for {
		now := d.flow(ctx)
		if now != last {
			last = now
			d.out.Linef("  %s  %s", time.Now().Format(time.TimeOnly), now)
		}
		if strings.HasPrefix(now, "flow: "+string(breaker.Running)) || strings.HasPrefix(now, "flow: "+string(breaker.RampingUp)) {
			return nil
		}
		if timer.Wait(ctx, time.Second) != nil {
			return context.Cause(ctx)
		}
	}
}

// flow returns the state of the flow that Health reports.
func (d *demo) flow(ctx context.Context) string {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.Functions+"/api/health", nil)
	if err != nil {
		return err.Error()
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "the handler does not answer"
	}
	defer func() { _ = resp.Body.Close() }()
	var health struct {
		Flow struct {
			State, Kind, Code string
			NextProbe         time.Time `json:"next_probe"`
		}
		Dependencies map[string]struct{ State, Kind, Code string }
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&health); err != nil {
		return "the handler does not answer"
	}
	line := "flow: " + health.Flow.State
	if health.Flow.State == string(breaker.StoppedFlow) {
		line += fmt.Sprintf(" (%s %s), next probe %s", health.Flow.Kind, health.Flow.Code, health.Flow.NextProbe.Local().Format(time.TimeOnly))
	}
	if sql := health.Dependencies["sql"]; sql.State == "failing" {
		line += fmt.Sprintf("; sql failing (%s %s)", sql.Kind, sql.Code)
	}
	return line
}

type demoKillHandler struct{}

// Run kills the handler and waits until another one is ready.
func (*demoKillHandler) Run(ctx context.Context, of *demoCommand) error {
	d, err := of.find(ctx)
	if err != nil {
		return err
	}
	pid, err := d.handler()
	if err != nil {
		return err
	}
	handler, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	killed := time.Now()
	if err := handler.Kill(); err != nil {
		return fmt.Errorf("kill the handler (process %d): %w", pid, err)
	}
	d.out.Linef("handler process %d killed; a host gives up at the third failure in half an hour, and another host starts, as in Azure", pid)
	const timeout = time.Minute
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no other handler was ready within %v", timeout))
	defer cancel()
	for {
		if again, err := of.find(ctx); err == nil { // another host is another process
			d.Stack = again.Stack
		}
		if now, err := d.handler(); err == nil && now != pid && strings.HasPrefix(d.flow(ctx), "flow: ") {
			d.out.Linef("process %d is ready %.1f s later; the host offers the open batches again, and written rows do not change", now, time.Since(killed).Seconds())
			return nil
		}
		if timer.Wait(ctx, 100*time.Millisecond) != nil {
			return context.Cause(ctx)
		}
	}
}

// handler returns the handler's process id.
func (d *demo) handler() (int, error) {
	at := slices.IndexFunc(d.Servers, func(p stackfile.Process) bool { return p.Name == functionsName })
	if at < 0 {
		return 0, errors.New("the stack has no host now")
	}
	return childOf(d.Servers[at].PID)
}

// childOf finds the only child of a process in the process table of Linux.
func childOf(parent int) (int, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		return 0, errors.New("this machine has no /proc to find the handler in: kill the process `handler` by hand")
	}
	for _, file := range stats {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the process has just ended
		}
		head, rest, found := strings.Cut(string(text), " (")
		fields := strings.Fields(rest[strings.LastIndexByte(rest, ')')+1:])
		if !found || len(fields) < 2 || fields[1] != strconv.Itoa(parent) {
			continue
		}
		return strconv.Atoi(head)
	}
	return 0, fmt.Errorf("the host (process %d) has no handler process now", parent)
}

type demoBadDocument struct{}

// Run submits an invalid document, waits until it is processed, and shows its state.
func (*demoBadDocument) Run(ctx context.Context, of *demoCommand) error {
	d, err := of.find(ctx)
	if err != nil {
		return err
	}
	documents, err := open.Results(d.config.Cosmos)
	if err != nil {
		return err
	}
	defer documents.Close()
	raw, id, err := badDocument(time.Now())
	if err != nil {
		return err
	}
	if err := documents.Submit(ctx, raw, false); err != nil {
		return err
	}
	d.out.Linef("submitted %q, whose line 9999999999 does not exist", id)
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("the document was not processed within a minute: is the flow stopped?"))
	defer cancel()
	for {
		stored, err := documents.Read(ctx, id)
		if err != nil && !fault.IsDependency(err) {
			return err
		}
		if doc, err := invoice.Read(stored, time.Now()); err == nil && doc.State.Status != invoice.Pending {
			d.out.Linef("  status %s, %d of %d retries used, next try %s", doc.State.Status,
				min(doc.State.RetryCount, commit.MaxRetries), commit.MaxRetries,
				time.Unix(doc.State.RetryAfter, 0).Format(time.TimeOnly))
			d.out.Linef("  %s (%s): %s", doc.State.LastErrorKind, doc.State.LastErrorCode, doc.State.LastError)
			d.out.Linef("after six counted failures and one more attempt it becomes a poison message; bin/sqlwriterctl document why %q explains its status", id)
			return nil
		}
		if timer.Wait(ctx, 100*time.Millisecond) != nil {
			return context.Cause(ctx)
		}
	}
}

// badDocument makes a current result whose line does not exist.
func badDocument(now time.Time) (raw json.RawMessage, id string, err error) {
	doc := sample.Generate(sample.Options{Seed: uint64(now.UnixNano()), Count: 1, Clean: true})[0] //nolint:gosec // any number does
	var members map[string]json.RawMessage
	if err := json.Unmarshal(doc.JSON, &members); err != nil {
		return nil, "", err
	}
	id = now.Format("2006-01-02 15:04:05.000000-07:00") + "-demo-9999999999"
	if members["id"], err = json.Marshal(id); err != nil {
		return nil, "", err
	}
	members["invoice_details_from_rpa"] = json.RawMessage(`{"IVCE_DTL_UID":9999999999}`)
	members["post-processing"] = json.RawMessage(`{"duplicate_detail_uids":[]}`)
	raw, err = json.Marshal(members)
	return raw, id, err
}
