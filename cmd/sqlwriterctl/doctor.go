package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
)

// Commands; the app's name is added to them.
const (
	checkStatus    = "sqlwriterctl status --check"
	lookAgainLater = `sqlwriterctl doctor --wait 5m`
)

// Finding the app has lookWithin, and each row. Health, which wakes a cold app, and after it the app's own rows have
// more: 120 seconds in all at most.
const (
	lookWithin, healthWithin, appWithin = 10 * time.Second, 90 * time.Second, 20 * time.Second
	// sendWithin is appWithin with a document sent: the app itself waits 30 s for it, or 90 s where it has just begun.
	// A cold app then takes up to four minutes in all.
	sendWithin = 120 * time.Second
	// lookAgain is the time between two looks at what is not yet.
	lookAgain = 10 * time.Second
)

type doctorCommand struct {
	Wait   time.Duration `help:"Look again for so long, as 5m, until nothing is left that waiting mends." placeholder:"DURATION"`
	Send   bool          `help:"Send a document of its own through the change feed, and delete it: up to four minutes in all, where the app wakes."`
	Report bool          `help:"Say which rows of docs/unverified.md this run has shown."`
}

// The rows that the Resource Manager and Health know. The others are the app's own (internal/ops).
const (
	rowSite, rowSettings, rowIdentity, rowRoles, rowPackage = "site", "settings", "identity", "roles", "package"
	rowHost, rowFunctions, rowHealth                        = "host", "functions", "health"
	rowAlwaysReady, rowTelemetry                            = "always_ready", "telemetry"
)

// doctorRow is a row, who looks (nil: the app), and the rows that must be ok before it can be.
type doctorRow struct {
	name  string
	look  func(*doctor, context.Context) (ops.DoctorRow, error)
	needs []string
}

// doctorRows are in the order in which things depend on each other. What the app says of itself needs Health only until
// the app answers; then it is Health that repeats what is wrong with the app (weigh).
func doctorRows() []doctorRow {
	connects := []string{rowSettings, rowIdentity, rowRoles}
	return []doctorRow{
		{rowSite, (*doctor).site, nil},
		{rowSettings, (*doctor).settingsRow, []string{rowSite}},
		{rowIdentity, (*doctor).identity, []string{rowSettings}},
		{rowRoles, (*doctor).roles, []string{rowSettings, rowIdentity}},
		{rowPackage, (*doctor).packaged, []string{rowRoles}},
		{rowHost, (*doctor).host, []string{rowSettings, rowRoles, rowPackage}},
		{rowFunctions, (*doctor).functions, []string{rowHost}},
		{rowHealth, nil, []string{rowHost, rowFunctions}},
		{rowAlwaysReady, (*doctor).alwaysReady, []string{rowSite}},
		{ops.DepSQL, nil, []string{rowSettings, rowIdentity}},
		{ops.DepCosmos, nil, connects},
		{ops.RowLeases, nil, []string{ops.DepCosmos, rowFunctions, rowAlwaysReady}},
		{ops.DepServiceBus, nil, connects},
		{ops.RowBlobs, nil, connects},
		{ops.RowSignIn, (*doctor).signIn, nil},
		{rowTelemetry, (*doctor).telemetry, []string{rowHealth, rowRoles, rowHost}},
		{ops.DepTimer, nil, []string{ops.DepCosmos, rowFunctions}},
		{ops.RowFeed, nil, []string{ops.DepCosmos, ops.RowLeases}},
	}
}

// ofApp reports whether a row is what the app says of itself.
func (r doctorRow) ofApp() bool {
	return r.look == nil && r.name != rowHealth || r.name == ops.RowSignIn
}

// diagnosis is the result.
type diagnosis struct {
	// Cause is the first row that is wrong, or else not yet, and follows from no other that is not ok.
	Cause string          `json:"cause,omitempty"`
	Rows  []ops.DoctorRow `json:"rows"`
	// bad are the rows that are not ok, names those of all by state. roots are those that follow from no other, with a
	// command that none before has: the worst first. waits are those that waiting may mend; none where a root is wrong.
	bad, roots []ops.DoctorRow
	names      map[string][]string
	waits      []string
}

// Run looks at everything, and again while something is not yet there.
func (c *doctorCommand) Run(ctx context.Context, a *app) error {
	var found diagnosis
	for end := a.now().Add(c.Wait); ; {
		d, err := a.doctor(ctx)
		if err != nil {
			return err
		}
		d.send = c.Send
		found = d.diagnose(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if len(found.waits) == 0 || !a.now().Add(lookAgain).Before(end) {
			break
		}
		left := end.Sub(a.now()).Round(time.Second)
		a.notef("not yet: %s; looking for %s more", strings.Join(found.waits, ", "), left)
		if err := a.wait(ctx, lookAgain); err != nil {
			return err
		}
	}
	if c.Report {
		return cmp.Or(a.emitReport(found), found.err())
	}
	names := idsOf(found.bad, func(row ops.DoctorRow) string { return row.Name })
	if err := a.emit(found, names, func() error { return printDiagnosis(a, found) }); err != nil {
		return err
	}
	return found.err()
}

// weigh finds the cause, and what is worth waiting for. awake says that the app answers. That a row was not looked at
// explains only why another was not.
func (f *diagnosis) weigh(awake bool) {
	state := map[string]string{}
	f.names = map[string][]string{}
	for _, row := range f.Rows {
		state[row.Name] = row.State
		f.names[row.State] = append(f.names[row.State], row.Name)
		if row.State != ops.RowOK {
			f.bad = append(f.bad, row)
		}
	}
	needs := map[string][]string{}
	for _, one := range doctorRows() {
		needs[one.name] = append(needs[one.name], one.needs...)
		switch {
		case one.ofApp() && !awake:
			needs[one.name] = append(needs[one.name], rowHealth)
		case one.ofApp() && state[one.name] == ops.RowWrong:
			needs[rowHealth] = append(needs[rowHealth], one.name)
		}
	}
	shown := map[string]bool{"": true}
	for _, worst := range []string{ops.RowWrong, ops.RowNotYet, ops.RowNotLooked} {
		for _, row := range f.bad {
			follows := slices.ContainsFunc(needs[row.Name], func(need string) bool {
				return state[need] == ops.RowWrong || state[need] == ops.RowNotYet ||
					state[need] == ops.RowNotLooked && row.State == ops.RowNotLooked
			})
			if row.State != worst || follows {
				continue
			}
			if worst != ops.RowNotLooked {
				f.Cause = cmp.Or(f.Cause, row.Name)
			}
			if !shown[row.Do] {
				f.roots = append(f.roots, row)
			}
			shown[row.Do] = true
		}
	}
	if f.Cause == "" || state[f.Cause] == ops.RowNotYet {
		f.waits = f.names[ops.RowNotYet]
	}
}

// err says what is not ok: what is wrong is a failure, and the rest is for a person to look at.
func (f diagnosis) err() error {
	var parts []string
	for _, state := range []string{ops.RowWrong, ops.RowNotYet, ops.RowNotLooked} {
		if names := f.names[state]; len(names) > 0 {
			parts = append(parts, stateWords(state)+": "+strings.Join(names, ", "))
		}
	}
	if len(parts) == 0 {
		return nil
	}
	err := errors.New(strings.Join(parts, "; "))
	if len(f.names[ops.RowWrong]) == 0 {
		err = &attentionError{err}
	}
	if len(f.roots) > 0 {
		return advised(err, "%s: `%s`", f.roots[0].Name, f.roots[0].Do)
	}
	return err
}

func stateWords(state string) string {
	if state == ops.RowNotLooked {
		return "not looked at"
	}
	return strings.ReplaceAll(state, "_", " ")
}

func printDiagnosis(a *app, f diagnosis) error {
	rows := [][]string{{"ROW", "STATE", "FOUND"}}
	for _, row := range f.Rows {
		rows = append(rows, []string{row.Name, stateWords(row.State), orDash(a.says(row.Found))})
	}
	if err := a.table(rows); err != nil {
		return err
	}
	if f.Cause != "" {
		cause := "cause: " + f.Cause
		if slices.Contains(f.names[ops.RowNotYet], f.Cause) {
			cause += ", which may mend by itself: --wait 5m"
		}
		a.printf("\n%s", cause)
	}
	for i, row := range f.roots {
		if i == 0 {
			a.printf("what to type, then look again:")
		}
		a.printf("%s: %s", row.Name, oneLine(row.Do)) // whole, because it is to be copied
	}
	return nil
}

// doctor looks at one app.
type doctor struct {
	a *app
	// t is how the app is asked; closed says why nobody can. subscription and group are those of an app in Azure.
	// publish and make are commands, empty where no app in Azure is known. send looks at ops.RowFeed too.
	t                                  target
	closed                             error
	subscription, group, publish, make string
	// awake says that the app has answered.
	send, awake bool
	// What several rows need is looked at once.
	settings  func() (judged, error)
	published func() (time.Time, error)
	ofApp     func() (map[string]ops.DoctorRow, error)
}

// doctor finds the app. It is an error only if none is named.
func (a *app) doctor(ctx context.Context) (*doctor, error) {
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	d := &doctor{a: a}
	if d.t, d.closed = a.target(ctx); isUsage(d.closed) {
		return nil, d.closed
	}
	if d.t.site != nil {
		id := strings.Split(d.t.site.ID+"////", "/")
		d.subscription, d.group = id[2], id[4]
		d.publish, d.make = "make publish APP="+d.t.site.Name, "make azure GROUP="+d.group
	}
	return d, nil
}

// diagnose looks at all rows at once; a row waits for what it takes from another.
func (d *doctor) diagnose(ctx context.Context) (f diagnosis) {
	ctx = policy.WithRetryOptions(ctx, policy.RetryOptions{MaxRetries: -1})
	look, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	if d.t.site != nil {
		d.settings = begun(func() (judged, error) { return d.judge(look) })
		d.published = begun(func() (time.Time, error) { return d.lastPublished(look) })
	}
	d.ofApp = begun(func() (map[string]ops.DoctorRow, error) { return d.askApp(ctx), nil })
	rows := doctorRows()
	if !d.send {
		rows = rows[:len(rows)-1] // ops.RowFeed
	}
	if d.t.site == nil && strings.HasPrefix(d.t.address, "http://") { // on this machine there is no Azure
		rows = slices.DeleteFunc(rows, func(one doctorRow) bool { return one.look != nil && one.name != ops.RowSignIn })
	}
	f.Rows = each(rows, func(one doctorRow) ops.DoctorRow {
		unnamed := row(ops.RowNotLooked, "", "only --app NAME looks at Azure")
		unnamed.Do = "sqlwriterctl doctor --app NAME"
		row := d.seen(unnamed, d.closed)
		switch {
		case one.look == nil, d.t.site == nil && one.name == ops.RowSignIn:
			row = d.said(one.name)
		case d.t.site != nil:
			row = d.seen(one.look(d, look))
		}
		row.Name = one.name
		if strings.HasPrefix(row.Do, "sqlwriterctl ") && d.a.App != "" && !strings.Contains(row.Do, " --app ") {
			row.Do += " --app " + d.a.App // otherwise a command is for the local stack, where there is one
		}
		return row
	})
	f.weigh(d.awake)
	return f
}

// begun begins something, and gives its result to each that waits for it. sync.OnceValues waits at a lock, and the
// clock of a test stands meanwhile.
func begun[T any](do func() (T, error)) func() (T, error) {
	var doing sync.WaitGroup
	var result T
	var err error
	doing.Go(func() { result, err = do() })
	return func() (T, error) {
		doing.Wait()
		return result, err
	}
}

// each does something with each at the same time, and gives the results in their order.
func each[A, B any](all []A, do func(A) B) []B {
	results := make([]B, len(all))
	var doing sync.WaitGroup
	for i, one := range all {
		doing.Go(func() { results[i] = do(one) })
	}
	doing.Wait()
	return results
}

// askApp asks the app for what only it sees, once Health says that it is awake. The row without a name is that of what
// it does not tell.
func (d *doctor) askApp(ctx context.Context) map[string]ops.DoctorRow {
	if d.t.address == "" {
		return map[string]ops.DoctorRow{"": d.seen(ops.DoctorRow{}, d.closed)}
	}
	health, awake := d.askHealth(ctx)
	rows := map[string]ops.DoctorRow{
		rowHealth: health, "": row(ops.RowNotLooked, d.publish, "the app says nothing of it: it is of another build"),
	}
	if !awake {
		rows[""] = row(ops.RowNotLooked, "", "the app does not answer (health)")
		return rows
	}
	d.awake = true
	within := appWithin
	if d.send {
		within = sendWithin
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var answer ops.DoctorAnswer
	err := d.closed
	if err == nil && d.a.caller == nil {
		d.a.asked = d.t
		d.a.caller, _, err = d.t.caller(d.a.http)
	}
	if err == nil {
		answer, err = opsapi.Do(ctx, d.a.caller, opsapi.Doctor, ops.DoctorRequest{Send: d.send})
	}
	if err != nil {
		unseen := d.seen(ops.DoctorRow{}, err)
		unseen.Do = cmp.Or(unseen.Do, d.publish)
		rows[""] = unseen
	}
	for _, one := range answer.Rows {
		if one.State == ops.RowWrong { // Health is not ready because of it
			health.Do = ""
			rows[rowHealth] = health
		}
		one.Found = d.hide(one.Found, true)
		one.Do = d.filled(one)
		rows[one.Name] = one
	}
	return rows
}

// said is a row of the app.
func (d *doctor) said(name string) ops.DoctorRow {
	rows, _ := d.ofApp()
	if row, told := rows[name]; told {
		return row
	}
	return rows[""]
}

// row makes a row; the command comes before what was found.
func row(state, do, format string, args ...any) ops.DoctorRow {
	return ops.DoctorRow{State: state, Do: do, Found: fmt.Sprintf(format, args...)}
}

// seen is a row, or that of an error in its place, in our words: those of az and of the Resource Manager have values.
func (d *doctor) seen(found ops.DoctorRow, err error) ops.DoctorRow {
	if err == nil {
		return found
	}
	what, advice := d.a.describe(err)
	refused, ofARM := errors.AsType[*refusedError](err)
	_, ofAz := errors.AsType[*azError](err)
	_, own := errors.AsType[*ownError](err)
	switch {
	case own, ofARM && refused.denied():
	case ofARM:
		what = fmt.Sprintf("Azure Resource Manager answers %d %s", refused.Status, refused.Code)
	case ofAz:
		what = "az refuses: it is not there, or nobody is signed in"
	case errors.Is(err, context.DeadlineExceeded):
		what = "no answer came in time"
	default:
		what = d.hide(what, true)
	}
	_, command, _ := strings.Cut(advice, "`")
	command, _, _ = strings.Cut(command, "`")
	return row(ops.RowNotLooked, command, "%s", what)
}
