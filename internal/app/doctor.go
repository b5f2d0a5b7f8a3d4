package app

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sqlwriter/handlers"
	"sqlwriter/internal/app/open"
	"sqlwriter/internal/condition"
	"sqlwriter/internal/config"
	"sqlwriter/internal/cosmos"
	"sqlwriter/internal/explain"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
)

const (
	// leftFor is the age of what a doctor that was killed left, before another one deletes it.
	leftFor = time.Hour
	// clockOff is the most that the clocks of the app and of SQL may differ.
	clockOff = time.Minute
	// leaseOld is the age of a lease that nobody renews; the host renews each every 17 seconds. beginsWithin is what a
	// new process has for its trigger to begin.
	leaseOld     = 5 * time.Minute
	beginsWithin = 2 * time.Minute
	// ofContainers begins the commands about containers, and inDatabase stands after the verb.
	ofContainers   = "az cosmosdb sql container "
	inDatabase     = " --resource-group GROUP --account-name ACCOUNT --database-name DATABASE"
	listContainers = ofContainers + "list" + inDatabase
	// expires says what switchOnTimeToLive does.
	expires = "; -1 switches it on, and a document with a ttl of its own then expires, no other"
	// mayUse is what is found of what can be opened.
	mayUse = "it is there, and the app may use it"
)

// looks are what Doctor looks at, without the breaker.
func (a *App) looks() []ops.Look {
	const tried = " was written and deleted"
	database := "rights and procedures of this build are there, and the ledger is adopted"
	if a.config.Mode == config.ModeShadow {
		database = "rights and procedures of this build are there; a shadow needs no adopted ledger"
	}
	left := func() time.Time { return a.status.now().Add(-leftFor) }
	return slices.Concat([]ops.Look{
		{Row: ops.DepSQL, At: a.lookClock},
		look(ops.DepSQL, "", database, a.checkDatabase),
		look(ops.DepCosmos, config.CosmosContainer, mayUse, func(ctx context.Context) error {
			err := a.clients.results.Ping(ctx)
			if err == nil {
				err = a.ops.DeleteCanaries(ctx)
			}
			return err
		}),
		look(ops.DepCosmos, config.ControlContainer, "a document"+tried, func(ctx context.Context) error {
			return a.clients.controls.TryWrites(ctx, a.config.SysName, left())
		}),
		{Row: ops.RowLeases, At: a.lookLeases},
	}, a.clients.lookQueues, []ops.Look{
		look(ops.RowBlobs, "", "a file"+tried, func(ctx context.Context) error {
			return a.clients.tryFiles(ctx, left())
		}),
		{Row: ops.RowSignIn, At: func(ctx context.Context) ops.DoctorRow { return a.lookSignIn(ctx, a.pages()) }},
	})
}

// look is ok, and says right, unless something fails. setting names what is looked at; its value is said to nobody.
func look(row, setting, right string, something func(context.Context) error) ops.Look {
	return ops.Look{Row: row, At: func(ctx context.Context) ops.DoctorRow {
		return judged(setting, right, something(ctx))
	}}
}

// judged says of a failure what Health says.
func judged(setting, right string, err error) ops.DoctorRow {
	if err == nil {
		return ops.DoctorRow{State: ops.RowOK, Found: right}
	}
	found := whyNotOpen(err)
	do := command(setting, found, err)
	if setting != "" {
		found = setting + ": " + found
	}
	switch {
	case do != listContainers:
	case setting == config.CosmosContainer:
		found += "; no container of results is there: " + config.CosmosDatabase + " or " + setting +
			" is a wrong name. The command lists what there is; its 404 means a wrong database"
	default:
		found += "; look whose it is: " + config.CosmosDatabase +
			" may name a wrong database, and only its owner may remove it"
	}
	return wrong(do, "%s", found)
}

func wrong(do, format string, args ...any) ops.DoctorRow {
	return ops.DoctorRow{State: ops.RowWrong, Found: fmt.Sprintf(format, args...), Do: do}
}

// command is the command against a failure: against what only the app knows, else the first one of what `sqlwriterctl
// explain` says to do.
//
// The app's own container is made where there is none. One with another key may be somebody else's, and the results are
// the API's: nothing that stands here deletes them, or makes others in what may be a wrong database. The command only
// shows what containers there are, with their keys. Where a person then corrects the setting, or the owner takes the
// container away, the next run is ok or makes the app's own.
func command(setting, found string, err error) string {
	e := fault.As(err)
	if e == nil {
		return "sqlwriterctl status"
	}
	missing := strings.HasPrefix(e.Code, "404")
	switch own := setting == config.ControlContainer || setting == config.LeaseContainer; {
	case missing && own:
		return ofContainers + "create" + inDatabase + " --name " + setting + " --partition-key-path /id --ttl -1"
	case missing && setting == config.CosmosContainer, own && e.Code == cosmos.CodePartitionKey:
		return listContainers
	case e.Code == "schema" && strings.Contains(found, "deploy/sql/app_rights.sql"):
		return "sqlwriterctl migrate up --user IDENTITY --client-id CLIENT_ID"
	case e.Code == "schema" && strings.Contains(found, "sqlwriterctl migrate up"):
		return "sqlwriterctl migrate up"
	case e.Code == "schema":
		return "sqlwriterctl column check"
	}
	entries, _ := explain.New(open.Faults()).Look(e.Code)
	if len(entries) == 0 {
		return condition.Command("", e.Code)
	}
	adapter, _, _ := strings.Cut(e.Op, ":")
	i := slices.IndexFunc(entries, func(x explain.Entry) bool { return x.Adapter == adapter })
	return condition.Command(entries[max(i, 0)].Do, e.Code)
}

// checkDatabase checks rights, procedures, tables and adoption anew. A shadow needs no adoption.
func (a *App) checkDatabase(ctx context.Context) error {
	if a.db == nil { // it could not be made
		return a.sql.Ready(ctx)
	}
	err := a.db.Check(ctx)
	if err == nil && a.config.Mode != config.ModeShadow {
		_, err = a.db.CheckAdopted(ctx, "app: open sql")
	}
	return err
}

// lookClock logs in, where an engine has logins and a clock of its own.
func (a *App) lookClock(ctx context.Context) ops.DoctorRow {
	type login interface {
		Login(ctx context.Context) (user string, at time.Time, err error)
	}
	var server login
	if a.db != nil {
		server, _ = a.db.Store.(login)
	}
	if server == nil { // checkDatabase says the rest
		return ops.DoctorRow{State: ops.RowOK}
	}
	before := a.status.now()
	user, at, err := server.Login(ctx)
	if off := max(before.Sub(at), at.Sub(a.status.now())); off > clockOff && err == nil {
		return wrong(ops.Restart, "the clocks of this instance and of SQL differ by %s", off.Round(time.Second))
	}
	return judged("", "user "+fault.Truncate(user, fault.MaxForeign), err)
}

func (a *App) lookLeases(ctx context.Context) ops.DoctorRow {
	set, err := a.clients.leases.HasTimeToLive(ctx)
	var leases []cosmos.Lease
	if err == nil {
		leases, err = a.clients.leases.Leases(ctx, a.config.Cosmos.LeasePrefix)
	}
	switch {
	case err == nil && !set && len(leases) == 0:
		return wrong(switchOnTimeToLive, lacksTimeToLive+expires+"; no lease is in it yet: look whose it is first")
	case err == nil && !set:
		return wrong(switchOnTimeToLive, lacksTimeToLive+expires)
	}
	now, owners, old, oldest := a.status.now(), map[string]bool{}, 0, time.Duration(0)
	for _, l := range leases {
		age := now.Sub(l.RenewedAt).Truncate(time.Second)
		if oldest = max(oldest, age); age > leaseOld {
			old++
		}
		if l.Owner != "" {
			owners[l.Owner] = true
		}
	}
	n, of := len(leases), ops.Plural(len(leases), "lease", "leases")
	switch {
	case err != nil:
	case n == 0 && now.Sub(a.status.report().Since) < beginsWithin:
		return ops.DoctorRow{State: ops.RowNotYet, Found: "no lease of LEASE_PREFIX yet: the app has just begun"}
	case n == 0:
		return wrong(ops.Restart, "no lease of LEASE_PREFIX: the trigger of CommitResults never began; "+
			"look at the rows host and functions")
	case old > 0:
		return wrong(ops.Restart, "%d of %d %s not renewed, for up to %s: no instance of CommitResults reads",
			old, n, of, oldest)
	case len(owners) == 0:
		return ops.DoctorRow{State: ops.RowNotYet, Found: fmt.Sprintf("no instance has any of %d %s", n, of)}
	}
	right := fmt.Sprintf("%d %s of %d %s, renewed in the last %s", n, of, len(owners),
		ops.Plural(len(owners), "owner", "owners"), oldest)
	row := judged(config.LeaseContainer, right, err)
	if strings.HasPrefix(row.Do, ofContainers+"create") && a.clients.results.Ping(ctx) != nil {
		row.Do = listContainers
		row.Found += "; the container of results is not seen either, so nothing is made in what may be a wrong database"
	}
	return row
}

// lookSignIn forges the platform's headers, as anybody can.
func (a *App) lookSignIn(ctx context.Context, pages handlers.Mounted) ops.DoctorRow {
	says := "off: the platform's sign-in is not seen, and the operators' pages refuse everybody"
	if a.config.SignIn {
		says = "on: the platform's sign-in is seen, and a forged one refused"
	}
	if a.config.OpenUI {
		says = "open: " + config.UIAuth + " is none, so the operators' pages need no sign-in, and answer on this machine alone"
	}
	forged, err := handlers.BelievesForged(ctx, pages)
	if forged {
		return wrong("az functionapp stop -g GROUP -n APP",
			"the operators' pages believe a forged header X-MS-CLIENT-PRINCIPAL")
	}
	return judged("", says, err)
}
