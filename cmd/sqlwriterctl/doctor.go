package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
)

// Each call has its time: Health is what wakes a cold app, and the app looks at its own rows all at once.
const (
	lookWithin, healthWithin, appWithin = 10 * time.Second, 90 * time.Second, 30 * time.Second
	// lookAgain is the time between two looks at what is not yet.
	lookAgain = 10 * time.Second
)

type doctorCommand struct {
	Wait   time.Duration `help:"Look again while something is not yet there, for so long: 5m." placeholder:"DURATION"`
	Report bool          `help:"Say which rows of docs/unverified.md this run has shown."`
}

// The rows that the Resource Manager and Health know. The others are the app's own (internal/ops).
const (
	rowSite        = "site"
	rowSettings    = "settings"
	rowIdentity    = "identity"
	rowRoles       = "roles"
	rowPackage     = "package"
	rowHost        = "host"
	rowFunctions   = "functions"
	rowHealth      = "health"
	rowAlwaysReady = "always_ready"
	rowTelemetry   = "telemetry"
)

// doctorRow is a row, and the rows that must be ok before it can be.
type doctorRow struct {
	name  string
	needs []string
}

// doctorRows are in the order in which things depend on each other.
func doctorRows() []doctorRow {
	return []doctorRow{
		{rowSite, nil},
		{rowSettings, []string{rowSite}},
		{rowIdentity, []string{rowSettings}},
		{rowRoles, []string{rowIdentity}},
		{rowPackage, []string{rowRoles}},
		{rowHost, []string{rowPackage}},
		{rowFunctions, []string{rowHost}},
		{rowHealth, []string{rowFunctions}},
		{rowAlwaysReady, []string{rowSite}},
		{ops.DepSQL, []string{rowHealth}},
		{ops.DepCosmos, []string{rowHealth}},
		{ops.RowLeases, []string{ops.DepCosmos, rowAlwaysReady}},
		{ops.DepServiceBus, []string{rowHealth}},
		{ops.RowBlobs, []string{rowHealth}},
		{ops.RowSignIn, []string{rowHealth}},
		{rowTelemetry, []string{rowHealth}},
		{ops.DepTimer, []string{rowHealth}},
	}
}

// diagnosis is the result.
type diagnosis struct {
	// Cause is the first wrong row on which another depends that is not ok; empty without one.
	Cause string          `json:"cause,omitempty"`
	Rows  []ops.DoctorRow `json:"rows"`
}

// Run looks at everything, and again while something is not yet there.
func (c *doctorCommand) Run(ctx context.Context, a *app) error {
	var found diagnosis
	for end := a.now().Add(c.Wait); ; {
		d, err := a.doctor(ctx)
		if err != nil {
			return err
		}
		found = d.diagnose(ctx)
		waits := found.waits()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if len(waits) == 0 || !a.now().Add(lookAgain).Before(end) {
			break
		}
		a.notef("not yet: %s", strings.Join(waits, ", "))
		if err := a.wait(ctx, lookAgain); err != nil {
			return err
		}
	}
	if c.Report {
		return cmp.Or(a.emitReport(found), found.err())
	}
	names := idsOf(found.notOK(), func(row ops.DoctorRow) string { return row.Name })
	if err := a.emit(found, names, func() error { return printDiagnosis(a, found) }); err != nil {
		return err
	}
	return found.err()
}

// waits are the rows that are not yet there; none where something is wrong that waiting does not mend.
func (f diagnosis) waits() []string {
	notYet := f.in(ops.RowNotYet)
	for _, name := range f.in(ops.RowWrong) {
		if !slices.ContainsFunc(notYet, func(early string) bool { return slices.Contains(dependents(early), name) }) {
			return nil
		}
	}
	return notYet
}

// dependents are the rows that depend on one.
func dependents(name string) []string {
	all := []string{name}
	for _, one := range doctorRows() {
		if slices.ContainsFunc(one.needs, func(need string) bool { return slices.Contains(all, need) }) {
			all = append(all, one.name)
		}
	}
	return all[1:]
}

// in are the names of the rows that are in a state.
func (f diagnosis) in(state string) (names []string) {
	for _, row := range f.Rows {
		if row.State == state {
			names = append(names, row.Name)
		}
	}
	return names
}

func (f diagnosis) notOK() []ops.DoctorRow {
	return slices.DeleteFunc(slices.Clone(f.Rows), func(row ops.DoctorRow) bool { return row.State == ops.RowOK })
}

// err says what is not ok: what is wrong is a failure, and the rest is for a person to look at.
func (f diagnosis) err() error {
	var parts []string
	for _, state := range []string{ops.RowWrong, ops.RowNotYet, ops.RowNotLooked} {
		if names := f.in(state); len(names) > 0 {
			parts = append(parts, stateWords(state)+": "+strings.Join(names, ", "))
		}
	}
	if len(parts) == 0 {
		return nil
	}
	err := errors.New(strings.Join(parts, "; "))
	if len(f.in(ops.RowWrong)) == 0 {
		err = &attentionError{err}
	}
	for _, row := range f.notOK() {
		if row.Do != "" && (f.Cause == "" || f.Cause == row.Name) {
			return advised(err, "%s: `%s`", row.Name, row.Do)
		}
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
		rows = append(rows, []string{row.Name, stateWords(row.State), orDash(oneLine(row.Found))})
	}
	if err := a.table(rows); err != nil {
		return err
	}
	if f.Cause != "" {
		a.printf("\ncause: %s", f.Cause)
	}
	shown := map[string]bool{"": true}
	for _, row := range f.notOK() {
		if !shown[row.Do] { // whole, because it is to be copied
			a.printf("%s: %s", row.Name, oneLine(row.Do))
		}
		shown[row.Do] = true
	}
	return nil
}

// doctor looks at one app.
type doctor struct {
	a *app
	// p and s are nil where no app in Azure is named; unseen is then the row of what only Azure knows.
	p      *person
	s      *site
	unseen ops.DoctorRow
	// t is how the app is asked; closed says why nobody can.
	t      target
	closed error

	settings  func() judged
	published func() publishedAt
	healthRow func() ops.DoctorRow
	appRows   func() map[string]ops.DoctorRow
	component func() component
}

// doctor finds the app. It is an error only if none is named.
func (a *app) doctor(ctx context.Context) (*doctor, error) {
	d := &doctor{a: a, unseen: ops.DoctorRow{State: ops.RowNotLooked}}
	named, from := a.App, "--app"
	if named == "" && a.Settings == "" {
		named, from = a.env(appVariable), appVariable
	}
	if named == "" || isAddress(named) {
		t, err := a.target(ctx)
		d.t = t
		d.unseen.Found = "an app in Azure is looked at by its name"
		d.unseen.Do = "sqlwriterctl doctor --app NAME"
		return d, err
	}
	d.t = target{from: from, key: a.env(keyVariable), audience: a.env(audienceVariable)}
	find, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	p, s, err := a.find(find, from, named)
	if isUsage(err) {
		return nil, err
	}
	d.p = p
	if err != nil {
		d.unseen = d.unlooked(err)
		return d, nil
	}
	d.s = &s
	d.closed = d.t.enter(find, p, s)
	return d, nil
}

// diagnose looks at all rows at once; a row waits for what it takes from another.
func (d *doctor) diagnose(ctx context.Context) (f diagnosis) {
	d.settings = sync.OnceValue(func() judged { return d.judge(ctx) })
	d.published = sync.OnceValue(func() publishedAt { return d.packaged(ctx) })
	d.component = sync.OnceValue(func() component { return d.findComponent(ctx) })
	d.healthRow = sync.OnceValue(func() ops.DoctorRow { return d.health(ctx) })
	d.appRows = sync.OnceValue(func() map[string]ops.DoctorRow { return d.askApp(ctx) })
	looks := map[string]func() ops.DoctorRow{
		rowSite:        func() ops.DoctorRow { return d.site() },
		rowSettings:    func() ops.DoctorRow { return d.settings().row },
		rowIdentity:    func() ops.DoctorRow { return d.settings().identity },
		rowRoles:       func() ops.DoctorRow { return d.roles(ctx) },
		rowPackage:     func() ops.DoctorRow { return d.published().row },
		rowHost:        func() ops.DoctorRow { return d.host(ctx) },
		rowFunctions:   func() ops.DoctorRow { return d.functions(ctx) },
		rowAlwaysReady: func() ops.DoctorRow { return d.alwaysReady() },
		rowTelemetry:   func() ops.DoctorRow { return d.telemetry(ctx) },
	}
	of := map[string]ops.DoctorRow{}
	var lock sync.Mutex
	var all sync.WaitGroup
	for _, one := range doctorRows() {
		look, azure := looks[one.name]
		switch {
		case !azure && one.name == rowHealth:
			look = d.healthRow
		case !azure:
			look = func() ops.DoctorRow { return d.appRows()[one.name] }
		case d.s == nil && d.t.here():
			continue // the local stack has none of it
		case d.s == nil:
			look = func() ops.DoctorRow { return d.unseen }
		}
		all.Go(func() {
			row := look()
			row.Name = one.name
			lock.Lock()
			of[one.name] = row
			lock.Unlock()
		})
	}
	all.Wait()
	for _, one := range doctorRows() {
		if row, ok := of[one.name]; ok {
			f.Rows = append(f.Rows, row)
		}
	}
	f.Cause = causeOf(of)
	return f
}

// causeOf is the first wrong row on which another depends that is not ok.
func causeOf(of map[string]ops.DoctorRow) string {
	for _, one := range doctorRows() {
		if of[one.name].State != ops.RowWrong {
			continue
		}
		for _, name := range dependents(one.name) {
			if row, ok := of[name]; ok && row.State != ops.RowOK {
				return one.name
			}
		}
	}
	return ""
}

// here reports whether the app runs on this machine.
func (t target) here() bool {
	return t.local || strings.HasPrefix(t.address, "http://") // a credential goes to another machine by https alone
}

// askApp asks the app for what only it sees, once Health says that it is awake.
func (d *doctor) askApp(ctx context.Context) map[string]ops.DoctorRow {
	rows := map[string]ops.DoctorRow{}
	all := func(row ops.DoctorRow) map[string]ops.DoctorRow {
		for _, one := range doctorRows() {
			if _, told := rows[one.name]; !told {
				rows[one.name] = row
			}
		}
		return rows
	}
	health := d.healthRow()
	switch {
	case d.t.address == "":
		return all(d.unseen)
	case d.closed != nil:
		return all(d.unlooked(d.closed))
	case health.State != ops.RowOK && !strings.HasPrefix(health.Found, liveNotReady):
		return all(row(ops.RowNotLooked, "", "the app does not answer (health)"))
	}
	ctx, cancel := context.WithTimeout(ctx, appWithin)
	defer cancel()
	var err error
	if d.a.caller == nil {
		d.a.asked = d.t
		d.a.caller, _, err = d.t.caller(d.a.http)
	}
	var answer ops.DoctorAnswer
	if err == nil {
		answer, err = opsapi.Do(ctx, d.a.caller, opsapi.Doctor, ops.DoctorRequest{})
	}
	if err != nil {
		return all(d.unasked(err))
	}
	for _, one := range answer.Rows {
		one.Found, one.Do = d.hide(one.Found), d.filled(one.Do)
		rows[one.Name] = one
	}
	return all(row(ops.RowNotLooked, d.again(publish), "the app says nothing of it: it is of another build"))
}

// filled puts the app and its resource group into a command of the app, which knows neither.
func (d *doctor) filled(command string) string {
	if d.s == nil {
		return command
	}
	return strings.NewReplacer("-g GROUP -n APP", "-g "+group(d.s.ID)+" -n "+d.s.Name).Replace(command)
}

// unasked is the row of what the app did not tell. The words of the app's sign-in are those of az, and are left out.
func (d *doctor) unasked(err error) ops.DoctorRow {
	var lost *opsapi.LostError
	var denied *opsapi.DeniedError
	var request *ops.RequestError
	var ofAz *advisedError
	if errors.As(err, &ofAz) {
		return row(ops.RowNotLooked, "az login", "az gives no token for the app")
	}
	if errors.As(err, &lost) || errors.As(err, &denied) || errors.As(err, &request) || fault.As(err) != nil {
		what, _ := d.a.describe(err)
		return row(ops.RowNotLooked, d.again("sqlwriterctl status --app %s"), "%s", d.hide(what))
	}
	return row(ops.RowNotLooked, d.again(publish), "the app does not know the call: it is of another build")
}

const publish = "make publish APP=%s"

// again is a command with the app's name; empty where no app in Azure is named.
func (d *doctor) again(format string) string {
	if d.s == nil {
		return ""
	}
	return fmt.Sprintf(format, d.s.Name)
}

// row makes a row; the command comes before what was found.
func row(state, do, format string, args ...any) ops.DoctorRow {
	return ops.DoctorRow{State: state, Do: do, Found: fmt.Sprintf(format, args...)}
}

// unlooked is the row of what could not be looked at, in our words: those of az and of the Resource Manager may have a
// value of a setting.
func (d *doctor) unlooked(err error) ops.DoctorRow {
	var refused *refusedError
	var ofAz *azError
	var advised *advisedError
	r := row(ops.RowNotLooked, "", "no answer of Azure Resource Manager")
	if errors.As(err, &advised) {
		if command := commandIn.FindStringSubmatch(advised.advice); command != nil {
			r.Do = command[1]
		}
	}
	switch {
	case errors.As(err, &refused) && refused.denied():
		r.Found = refused.Error()
	case errors.As(err, &refused):
		r.Found = fmt.Sprintf("Azure Resource Manager answers %d %s", refused.Status, refused.Code)
	case errors.As(err, &ofAz):
		r.Found = "az refuses: it is not there, or nobody is signed in"
	case errors.Is(err, context.DeadlineExceeded):
		r.Found = "no answer came in time"
	case errors.Is(err, errNoSite):
		r.Found = err.Error()
	}
	return r
}

// commandIn finds the command of an advice.
var commandIn = regexp.MustCompile("`([^`]+)`")
