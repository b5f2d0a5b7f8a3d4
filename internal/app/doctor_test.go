package app

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/app/open"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/store/sqlite"
	"sqlwriter/internal/store/sqlserver"
	"sqlwriter/test/emulators/azurite"
	"sqlwriter/test/emulators/cosmosdb"
	"sqlwriter/test/emulators/servicebus"
	"sqlwriter/test/emulators/servicebus/servicebustest"
)

// deployment is a stack with all its services, in which nothing is wrong.
type deployment struct {
	*stack
	blobs *azurite.Server
	// server is what SQL Server answers in place of the file, where that has no such answer.
	server serverAnswers
}

// serverAnswers are a database with answers that a file does not have.
type serverAnswers struct {
	open.Store
	user  string
	ahead time.Duration
	check error
}

func (s *serverAnswers) Login(ctx context.Context) (string, time.Time, error) {
	_, at, err := s.Store.Login(ctx)
	return s.user, at.Add(s.ahead), err
}

func (s *serverAnswers) Check(ctx context.Context) error {
	return errors.Join(s.check, s.Store.Check(ctx))
}

func newDeployment(t *testing.T) *deployment {
	t.Helper()
	d := &deployment{stack: newStack(t), blobs: azurite.Start(t), server: serverAnswers{user: "func-web"}}
	bus := servicebustest.Start(t, servicebus.Queue{Name: "sqlwriter-web-runs"},
		servicebus.Queue{Name: "sqlwriter-web-batches", RequiresDuplicateDetection: true})
	d.settings["SERVICEBUS_CONNECTION"] = bus.ConnectionString()
	d.settings["AzureWebJobsStorage"] = d.blobs.ConnectionString()
	d.lease("leases", "web-127.0.0.1_db==_c==..0")
	d.lease("leases", "web-shadow-127.0.0.1_db==_c==..1") // another environment's
	require.NoError(t, d.app().ops.SaveCounts(t.Context()))
	return d
}

// lease makes a lease as the host does.
func (d *deployment) lease(container, id string) {
	d.t.Helper()
	c, err := d.cosmos.Client.NewContainer("invoices", container)
	require.NoError(d.t, err)
	_, err = c.CreateItem(d.t.Context(), azcosmos.NewPartitionKeyString(id),
		[]byte(`{"id":"`+id+`","LeaseToken":"0","Owner":"host","timestamp":"2026-01-01T00:00:00Z"}`), nil)
	require.NoError(d.t, err)
}

// app is an App that has not begun: Doctor needs nothing that is open.
func (d *deployment) app() *App {
	d.t.Helper()
	a := New(func(name string) (string, bool) { v, ok := d.settings[name]; return v, ok }, zerolog.Nop())
	require.Empty(d.t, a.problems)
	answers := d.server
	answers.Store = a.db.Store
	a.db.Store = &answers
	d.t.Cleanup(func() {
		a.clients.close()
		require.NoError(d.t, a.sql.Close())
	})
	return a
}

func (d *deployment) rows() map[string]ops.DoctorRow {
	d.t.Helper()
	answer, err := d.app().ops.Doctor(d.t.Context(), ops.DoctorRequest{})
	require.NoError(d.t, err)
	rows := map[string]ops.DoctorRow{}
	for _, r := range answer.Rows {
		rows[r.Name] = r
	}
	return rows
}

func (d *deployment) container(name string) *azcosmos.ContainerClient {
	d.t.Helper()
	c, err := d.cosmos.Client.NewContainer("invoices", name)
	require.NoError(d.t, err)
	return c
}

// readOnly is a connection to the evidence without the right to write.
func (d *deployment) readOnly() string {
	d.t.Helper()
	const account = "devstoreaccount1"
	const key = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
	cred, err := azblob.NewSharedKeyCredential(account, key)
	require.NoError(d.t, err)
	query, err := sas.BlobSignatureValues{
		ContainerName: "sqlwriter", ExpiryTime: time.Now().Add(time.Hour),
		Permissions: (&sas.ContainerPermissions{Read: true, List: true}).String(),
	}.SignWithSharedKey(cred)
	require.NoError(d.t, err)
	return "BlobEndpoint=http://" + d.blobs.Address + "/" + account + ";SharedAccessSignature=" + query.Encode()
}

// broken is one thing that is wrong with a deployment. mend does what the command does.
type broken struct {
	row, found, do string
	harm, mend     func(d *deployment)
}

func faults() map[string]broken {
	set := func(name, value string) func(*deployment) {
		return func(d *deployment) { d.settings[name] = value }
	}
	differs := func(text string) func(*deployment) {
		return func(d *deployment) {
			d.server.check = fault.Wrap(fault.Infrastructure, "sqlserver: check", "schema", "1 difference",
				errors.New(text))
		}
	}
	same := func(d *deployment) { d.server.check = nil }
	another := sqlserver.ProcedureState{
		Hash: "new", Missing: []string{"apply"}, Latest: "old", Differs: []string{"columns"},
	}
	return map[string]broken{
		"right to execute revoked": {
			"sql", "sqlserver: check: infrastructure schema: 1 difference: p: expected the right EXECUTE",
			"sqlwriterctl migrate up --user NAME --client-id ID",
			differs("p: expected the right EXECUTE, found none (fix: deploy/sql/app_rights.sql)"), same,
		},
		"procedures of another build": {
			"sql", "procedures new of this build: not installed; the database has old", "sqlwriterctl migrate up",
			differs(another.Describe()), same,
		},
		"user's columns": {
			"sql", "IVCE_DTL.X: expected text", "sqlwriterctl column check", differs("IVCE_DTL.X: expected text"), same,
		},
		"no user": {
			"sql", "sqlserver: open: infrastructure 18456", "sqlwriterctl migrate up --user NAME --client-id ID",
			func(d *deployment) {
				d.server.check = fault.New(fault.Infrastructure, "sqlserver: open", "18456", "the login failed")
			}, same,
		},
		"firewall": {
			"sql", "infrastructure 40615", "az sql server firewall-rule create -g GROUP -s SERVER -n NAME " +
				"--start-ip-address ADDRESS --end-ip-address ADDRESS",
			func(d *deployment) {
				d.server.check = fault.New(fault.Infrastructure, "sqlserver: open", "40615", "the firewall refuses")
			}, same,
		},
		"ledger not adopted": {
			"sql", "app: open sql: infrastructure ledger_not_adopted", "sqlwriterctl ledger adopt",
			func(d *deployment) { d.unadopt() }, func(d *deployment) {
				d.withStore(func(s *sqlite.Store) { require.NoError(d.t, s.MarkEmpty(d.t.Context(), "the test")) })
			},
		},
		"clock": {
			"sql", "the clocks of this instance and of SQL differ by 10m0s", "az functionapp restart -g GROUP -n APP",
			func(d *deployment) { d.server.ahead = 10*time.Minute + 100*time.Millisecond },
			func(d *deployment) { d.server.ahead = 0 },
		},
		"right to write documents revoked": {
			"cosmos", "cosmos: try to write: infrastructure 403/5301",
			"az cosmosdb sql role assignment create -g GROUP -a ACCOUNT --role-definition-id " +
				"00000000-0000-0000-0000-000000000002 --scope /dbs/DATABASE --principal-id OBJECT_ID",
			func(d *deployment) {
				_, err := d.cosmos.Server.AddFault(cosmosdb.Rule{
					ID: "role", Container: "sqlwriter-control", Op: cosmosdb.OpCreate,
					Status: http.StatusForbidden, Substatus: 5301,
				})
				require.NoError(d.t, err)
			}, func(d *deployment) { d.cosmos.Server.RemoveFault("role") },
		},
		"container without time to live": {
			"cosmos", "LEASE_CONTAINER: " + noTimeToLive, switchOnTimeToLive, func(d *deployment) {
				d.cosmos.Container(d.t, "invoices", "mortal", "/id")
				d.lease("mortal", "web-127.0.0.1_db==_c==..0")
				d.settings["LEASE_CONTAINER"] = "mortal"
			}, func(d *deployment) {
				_, err := d.container("mortal").Replace(d.t.Context(), azcosmos.ContainerProperties{
					ID: "mortal", PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/id"}, Version: 2},
					DefaultTimeToLive: to.Ptr[int32](-1),
				}, nil)
				require.NoError(d.t, err)
			},
		},
		"another partition key": {
			"cosmos", `container sqlwriter-control has the partition key "/owner": it must be /id`,
			"az cosmosdb sql container delete --resource-group GROUP --account-name ACCOUNT --database-name DATABASE " +
				"--name sqlwriter-control", func(d *deployment) {
				_, err := d.container("sqlwriter-control").Delete(d.t.Context(), nil)
				require.NoError(d.t, err)
				d.cosmos.Container(d.t, "invoices", "sqlwriter-control", "/owner")
			}, func(d *deployment) {
				_, err := d.container("sqlwriter-control").Delete(d.t.Context(), nil)
				require.NoError(d.t, err)
				require.Equal(d.t, "az cosmosdb sql container create --resource-group GROUP --account-name ACCOUNT "+
					"--database-name DATABASE --name sqlwriter-control --partition-key-path /id", d.rows()["cosmos"].Do)
				d.cosmos.Container(d.t, "invoices", "sqlwriter-control", "/id")
				require.NoError(d.t, d.app().ops.SaveCounts(d.t.Context()))
			},
		},
		"no lease container": {
			"cosmos", "LEASE_CONTAINER: cosmos: read definition: infrastructure 404",
			"az cosmosdb sql container create --resource-group GROUP --account-name ACCOUNT --database-name DATABASE " +
				"--name LEASE_CONTAINER --partition-key-path /id --ttl -1",
			set("LEASE_CONTAINER", "missing"), func(d *deployment) {
				d.cosmos.Leases(d.t, "invoices", "missing")
				d.lease("missing", "web-127.0.0.1_db==_c==..0")
			},
		},
		"wrong queue": {
			"servicebus", "RUNS_QUEUE: servicebus: open: infrastructure amqp:not-found: there is no such queue",
			"az servicebus queue create -g GROUP --namespace-name NAMESPACE -n QUEUE --enable-duplicate-detection true " +
				"--default-message-time-to-live P14D",
			set("RUNS_QUEUE", "sqlwriter-web-wrong"), set("RUNS_QUEUE", "sqlwriter-web-runs"),
		},
		"storage that refuses writes": {
			"blobs", "blob: keep: infrastructure 403/AuthorizationPermissionMismatch",
			`az role assignment create --role "Storage Blob Data Contributor" --assignee-object-id OBJECT_ID ` +
				`--assignee-principal-type ServicePrincipal --scope ACCOUNT_ID`,
			func(d *deployment) { d.settings["BLOB_CONNECTION"] = d.readOnly() },
			func(d *deployment) { delete(d.settings, "BLOB_CONNECTION") },
		},
	}
}

// Each row is broken once on the local stack. It is the first and only one that is wrong, and ok after its command.
func TestDoctorNamesWhatIsBroken(t *testing.T) {
	d := newDeployment(t)
	for name, r := range d.rows() {
		require.Equal(t, ops.RowOK, r.State, "%s: %+v", name, r)
	}
	for name, f := range faults() {
		t.Run(name, func(t *testing.T) {
			f.harm(d)
			for at, r := range d.rows() {
				switch {
				case at == f.row:
					require.Equal(t, ops.RowWrong, r.State, "%+v", r)
					require.Contains(t, r.Found, f.found)
					require.Equal(t, f.do, r.Do)
				case f.row == "cosmos" && (at == ops.RowLeases || at == ops.DepTimer):
				default:
					require.Equal(t, ops.RowOK, r.State, "%+v", r)
				}
			}
			f.mend(d)
			for at, r := range d.rows() {
				require.Equal(t, ops.RowOK, r.State, "%s: %+v", at, r)
			}
		})
	}
	left := 0
	pager := d.container("sqlwriter-control").NewQueryItemsPager("SELECT c.id FROM c WHERE STARTSWITH(c.id, 'doctor')",
		azcosmos.NewPartitionKey(), nil)
	for pager.More() {
		page, err := pager.NextPage(t.Context())
		require.NoError(t, err)
		left += len(page.Items)
	}
	require.Zero(t, left)
}

// Everything wrong at once is named in one run, and no value of a setting in it.
func TestDoctorNamesEverythingAtOnce(t *testing.T) {
	d := newDeployment(t)
	for name, f := range faults() {
		if name != "another partition key" && name != "container without time to live" {
			f.harm(d)
		}
	}
	d.settings["WEBSITE_AUTH_ENABLED"] = "true"
	began := time.Now()
	rows := d.rows()
	require.Less(t, time.Since(began), 30*time.Second)
	for _, name := range []string{"sql", "cosmos", "leases", "servicebus", "blobs"} {
		require.Equal(t, ops.RowWrong, rows[name].State, "%+v", rows[name])
		require.NotEmpty(t, rows[name].Do)
	}
	require.True(t, strings.HasPrefix(rows["sign_in"].Found, "on:"), "%+v", rows["sign_in"])
	for _, r := range rows {
		for _, setting := range []string{
			"COSMOS_CONNECTION", "SERVICEBUS_CONNECTION", "BLOB_CONNECTION", "SQL_CONNECTION", "RUNS_QUEUE",
			"LEASE_PREFIX", "LEASE_CONTAINER",
		} {
			require.NotContains(t, r.Found+r.Do, d.settings[setting], setting)
		}
	}
}
