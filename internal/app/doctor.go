package app

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"sqlwriter/handlers"
	"sqlwriter/internal/app/open"
	"sqlwriter/internal/config"
	"sqlwriter/internal/cosmos"
	"sqlwriter/internal/explain"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
)

// errNoTimeToLive is that of a lease container without one.
var errNoTimeToLive = errors.New(noTimeToLive)

// ofContainer begins the commands about a container, with its verb before and its name after.
const ofContainer = " --resource-group GROUP --account-name ACCOUNT --database-name DATABASE --name "

// doctorPorts are what Doctor looks at: the adapters, without the breaker and without what notes their answers.
func (a *App) doctorPorts() *ops.DoctorPorts {
	return &ops.DoctorPorts{
		Database: a.lookDatabase,
		Containers: []ops.Place{
			{Setting: config.CosmosContainer, Look: a.clients.results.Ping},
			{Setting: config.ControlContainer, Look: a.clients.controls.Ping},
			{Setting: config.LeaseContainer, Look: a.lookLeaseContainer},
		},
		Queues:    a.clients.places,
		Documents: cosmos.NewTrial(a.clients.controls, a.config.SysName), Files: a.clients.files,
		Leases: func(ctx context.Context) ([]ops.Lease, error) {
			return a.clients.leases.Leases(ctx, a.config.Cosmos.LeasePrefix)
		},
		SignIn: a.lookSignIn, Explain: explainFailure, Began: time.Now(),
	}
}

// lookDatabase is checkSQL, without what that changes.
func (a *App) lookDatabase(ctx context.Context) (v ops.DatabaseView, err error) {
	if a.db == nil { // it could not be made
		return v, asInfrastructure(depSQL, a.sql.Ready(ctx))
	}
	if v.User, v.At, err = a.db.Login(ctx); err != nil {
		return v, err
	}
	if err := a.db.Check(ctx); err != nil || a.config.Mode == config.ModeShadow {
		return v, err
	}
	if _, err := a.db.CheckAdopted(ctx, "app: open sql"); err != nil {
		return v, err
	}
	all, err := a.mappings(ctx)
	v.OtherMapping = len(all) > 0 && all[0].Version != a.db.Mapping.Version()
	return v, err
}

func (a *App) lookLeaseContainer(ctx context.Context) error {
	set, err := a.clients.leases.HasTimeToLive(ctx)
	if err == nil && !set {
		err = errNoTimeToLive
	}
	return err
}

// lookSignIn forges the platform's headers, as anybody can.
func (a *App) lookSignIn(ctx context.Context) (v ops.SignInView, err error) {
	switch {
	case a.config.OpenUI:
		v.Says = "open: " + config.UIAuth + " is none, on this machine alone"
	case a.config.SignIn:
		v.Says = "on: the platform's sign-in is seen, and a forged one refused"
	default:
		v.Says = "off: the platform's sign-in is not seen, and the operators' pages refuse everybody"
	}
	v.Forged, err = handlers.BelievesForged(ctx, a.pages())
	return v, err
}

// explainFailure says what Health says of a failure, and the first command of what `sqlwriterctl explain` says to do. of
// is the setting of what failed.
func explainFailure(of string, err error) (found, do string) {
	if errors.Is(err, errNoTimeToLive) {
		return noTimeToLive, switchOnTimeToLive
	}
	found = whyNotOpen(err)
	e := fault.As(err)
	if e == nil {
		return found, "sqlwriterctl status"
	}
	adapter, _, _ := strings.Cut(e.Op, ":")
	switch {
	case adapter == "cosmos" && (e.Code == cosmos.CodePartitionKey || strings.HasPrefix(e.Code, "404")):
		return found, containerCommand(cmp.Or(of, config.ControlContainer), e.Code)
	case e.Code == "schema":
		return found, migrateCommand(found)
	}
	entries, _ := explain.New(open.Faults()).Look(e.Code)
	i := slices.IndexFunc(entries, func(x explain.Entry) bool { return x.Adapter == adapter })
	if len(entries) > 0 {
		if do = ops.Command(entries[max(i, 0)].Do); do != entries[max(i, 0)].Do {
			return found, do
		}
	}
	return found, "sqlwriterctl explain " + e.Code
}

// containerCommand is the command against a container that is not there, or has a key that cannot be used. The app's
// own has no other name.
func containerCommand(of, code string) string {
	const verb = "az cosmosdb sql container "
	switch {
	case code == cosmos.CodePartitionKey && of == config.ControlContainer:
		return verb + "delete" + ofContainer + of
	case of == config.LeaseContainer:
		return verb + "create" + ofContainer + of + " --partition-key-path /id --ttl -1"
	}
	return verb + "create" + ofContainer + of + " --partition-key-path /id"
}

// migrateCommand is the command against differences of the database, each of which names what mends it.
func migrateCommand(differences string) string {
	switch {
	case strings.Contains(differences, "deploy/sql/app_rights.sql"):
		return "sqlwriterctl migrate up --user NAME --client-id ID"
	case strings.Contains(differences, "sqlwriterctl migrate up"):
		return "sqlwriterctl migrate up"
	}
	return "sqlwriterctl column check"
}
