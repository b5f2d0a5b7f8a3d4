package app

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	"github.com/Azure/go-amqp"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"sqlwriter/handlers"
	"sqlwriter/internal/app/open"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/config"
	"sqlwriter/internal/cosmos"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/store/sqlserver"
	"sqlwriter/test/emulators/azurite"
	"sqlwriter/test/emulators/cosmosdb"
	"sqlwriter/test/emulators/servicebus"
	"sqlwriter/test/emulators/servicebus/servicebustest"
	"sqlwriter/test/mapping"
)

// deployment is a stack with all its services, in which nothing is wrong.
type deployment struct {
	*stack
	blobs *azurite.Server
	bus   *servicebustest.Server
	// server is what SQL Server answers in place of the file, where that has no such answer; nil with a real one.
	server *serverAnswers
}

// serverAnswers are a database with answers that a file does not have.
type serverAnswers struct {
	open.Store
	user  string
	ahead time.Duration
	check error
}

func (s *serverAnswers) Login(context.Context) (string, time.Time, error) {
	return s.user, time.Now().Add(s.ahead), nil
}

func (s *serverAnswers) Check(ctx context.Context) error {
	return errors.Join(s.check, s.Store.Check(ctx))
}

func newDeployment(t *testing.T) *deployment {
	t.Helper()
	d := &deployment{stack: newStack(t), blobs: azurite.Start(t), server: &serverAnswers{user: "func-web"}}
	d.bus = servicebustest.Start(t, servicebus.Queue{Name: "sqlwriter-web-runs"},
		servicebus.Queue{Name: "sqlwriter-web-batches", RequiresDuplicateDetection: true})
	d.settings["SERVICEBUS_CONNECTION"] = d.bus.ConnectionString()
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
	if d.server != nil {
		answers := *d.server
		answers.Store = a.db.Store
		a.db.Store = &answers
	}
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

// ctl runs a command of sqlwriterctl, with the settings of the app.
func (d *deployment) ctl(command string) {
	d.t.Helper()
	cmd := exec.CommandContext(d.t.Context(), built(d.t, "sqlwriterctl"), strings.Fields(command)[1:]...)
	cmd.Env = []string{"HOME=" + d.t.TempDir()}
	for name, value := range d.settings {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	out, err := cmd.CombinedOutput()
	if !bytes.Contains(out, []byte("error: 0 wrong, 1 to look at")) { // of `column check` without a document
		require.NoError(d.t, err, "%s: %s", command, out)
	}
}

// healthSays is what Health says of a part, of an app that begins now.
func (d *deployment) healthSays(part string) (problem string) {
	d.t.Helper()
	_, _ = d.container("sqlwriter-control").DeleteItem(d.t.Context(),
		azcosmos.NewPartitionKeyString("breaker:web"), "breaker:web", nil) // the outage of another case
	a := d.app()
	a.Start(d.t.Context())
	defer a.Close()
	require.Eventually(d.t, func() bool {
		all := a.status.report().Problems
		i := slices.IndexFunc(all, func(p string) bool {
			return strings.HasPrefix(p, part+": ") && !strings.HasSuffix(p, "not open yet")
		})
		if i >= 0 {
			problem = all[i]
		}
		return i >= 0
	}, patience, 10*time.Millisecond)
	return problem
}

// broken is one thing that is wrong with a deployment. A command of sqlwriterctl is run, and mend does what one of
// another program does. health is the part of which Health knows it.
type broken struct {
	row, found, do string
	harm, mend     func(d *deployment)
	health         string
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
			"sqlwriterctl migrate up --user IDENTITY --client-id CLIENT_ID",
			differs("p: expected the right EXECUTE, found none (fix: deploy/sql/app_rights.sql)"), same, "sql",
		},
		"procedures of another build": {
			"sql", "procedures new of this build: not installed; the database has old", "sqlwriterctl migrate up",
			differs(another.Describe()), same, "sql",
		},
		"user's columns": {
			"sql", "IVCE_DTL.X: expected text", "sqlwriterctl column check",
			differs("IVCE_DTL.X: expected text"), same, "sql",
		},
		"no user": {
			"sql", "sqlserver: open: infrastructure 18456", "sqlwriterctl migrate up --user IDENTITY --client-id CLIENT_ID",
			func(d *deployment) {
				d.server.check = fault.New(fault.Infrastructure, "sqlserver: open", "18456", "the login failed")
			}, same, "sql",
		},
		"ledger not adopted": {
			"sql", "app: open sql: infrastructure ledger_not_adopted", "sqlwriterctl ledger adopt",
			func(d *deployment) { d.unadopt() }, func(*deployment) {}, "sql",
		},
		"another mapping": {
			"sql", "other_mapping: ", "sqlwriterctl migrate up --new-mapping", func(d *deployment) {
				other := filepath.Join(d.t.TempDir(), "other.json")
				require.NoError(d.t, os.WriteFile(other, mapping.File(func(tables map[invoice.Table]*mapping.Table) {
					tables[invoice.Detail].Column("UPC_CD")["missing"] = "keep"
				}), 0o600))
				d.settings["MAPPING"] = other
				d.ctl("sqlwriterctl migrate up --new-mapping")
				delete(d.settings, "MAPPING")
			}, func(*deployment) {}, "other_mapping",
		},
		"a timer that is silent": {
			"timer", "timer_silent: ", "sqlwriterctl explain timer_silent", func(d *deployment) {
				require.NoError(d.t, d.app().clients.counts.StoreCounts(d.t.Context(),
					ops.Saved{Counts: ops.Counts{At: time.Now().Add(-time.Hour), EverySeconds: 300}}))
			}, func(d *deployment) { require.NoError(d.t, d.app().ops.SaveCounts(d.t.Context())) }, "",
		},
		"clock": {
			"sql", "the clocks of this instance and of SQL differ by 10m0s", "az functionapp restart -g GROUP -n APP",
			func(d *deployment) { d.server.ahead = 10*time.Minute + 100*time.Millisecond },
			func(d *deployment) { d.server.ahead = 0 }, "",
		},
		"right to write documents revoked": {
			"cosmos", "cosmos: submit: infrastructure 403/5301",
			"az cosmosdb sql role assignment create -g GROUP -a ACCOUNT --role-definition-id " +
				"00000000-0000-0000-0000-000000000002 --scope /dbs/DATABASE --principal-id OBJECT_ID",
			func(d *deployment) {
				_, err := d.cosmos.Server.AddFault(cosmosdb.Rule{
					ID: "role", Container: "sqlwriter-control", Op: cosmosdb.OpCreate,
					Status: http.StatusForbidden, Substatus: 5301,
				})
				require.NoError(d.t, err)
			}, func(d *deployment) { d.cosmos.Server.RemoveFault("role") }, "",
		},
		"container without time to live": {
			"leases", "LEASE_CONTAINER has no time to live", switchOnTimeToLive, func(d *deployment) {
				d.cosmos.Container(d.t, "invoices", "mortal", "/id")
				d.lease("mortal", "web-127.0.0.1_db==_c==..0")
				d.settings["LEASE_CONTAINER"] = "mortal"
			}, func(d *deployment) {
				_, err := d.container("mortal").Replace(d.t.Context(), azcosmos.ContainerProperties{
					ID: "mortal", PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/id"}, Version: 2},
					DefaultTimeToLive: to.Ptr[int32](-1),
				}, nil)
				require.NoError(d.t, err)
			}, "leases",
		},
		"another partition key": {
			"cosmos", `container sqlwriter-control has the partition key "/owner": it must be /id`,
			listContainers, func(d *deployment) {
				_, err := d.container("sqlwriter-control").Delete(d.t.Context(), nil)
				require.NoError(d.t, err)
				d.cosmos.Container(d.t, "invoices", "sqlwriter-control", "/owner")
			}, func(d *deployment) { // a person looks, and its owner removes it
				_, err := d.container("sqlwriter-control").Delete(d.t.Context(), nil)
				require.NoError(d.t, err)
				require.Equal(d.t, "az cosmosdb sql container create --resource-group GROUP --account-name ACCOUNT "+
					"--database-name DATABASE --name sqlwriter-control --partition-key-path /id --ttl -1", d.rows()["cosmos"].Do)
				d.cosmos.Leases(d.t, "invoices", "sqlwriter-control")
				require.NoError(d.t, d.app().ops.SaveCounts(d.t.Context()))
			}, "cosmos",
		},
		"no lease container": {
			"leases", "LEASE_CONTAINER: cosmos: read definition: infrastructure 404",
			"az cosmosdb sql container create --resource-group GROUP --account-name ACCOUNT --database-name DATABASE " +
				"--name LEASE_CONTAINER --partition-key-path /id --ttl -1",
			set("LEASE_CONTAINER", "missing"), func(d *deployment) {
				d.cosmos.Leases(d.t, "invoices", "missing")
				d.lease("missing", "web-127.0.0.1_db==_c==..0")
			}, "leases",
		},
		"no container of results": {
			"cosmos", "; no container of results is there: COSMOS_DATABASE or COSMOS_CONTAINER is a wrong name", listContainers,
			set("COSMOS_CONTAINER", "wrong"), set("COSMOS_CONTAINER", "AI_PROCESS_LOGS"), "cosmos",
		},
		"right to queues revoked": {
			"servicebus", "RUNS_QUEUE: servicebus: open: infrastructure unauthorized",
			`az role assignment create --role "Azure Service Bus Data Owner" --assignee-object-id OBJECT_ID ` +
				`--assignee-principal-type ServicePrincipal --scope NAMESPACE_ID`,
			func(d *deployment) {
				d.bus.Fail(servicebus.Fault{
					On: servicebus.OnAttach, Then: servicebus.Refuse, Condition: string(amqp.ErrCondUnauthorizedAccess),
				})
			}, func(d *deployment) { d.bus.Heal() }, "",
		},
		"wrong queue": {
			"servicebus", "RUNS_QUEUE: servicebus: open: infrastructure amqp:not-found: there is no such queue",
			"az servicebus queue create -g GROUP --namespace-name NAMESPACE -n QUEUE --enable-duplicate-detection true " +
				"--default-message-time-to-live P14D",
			set("RUNS_QUEUE", "sqlwriter-web-wrong"), set("RUNS_QUEUE", "sqlwriter-web-runs"), "",
		},
		"storage that refuses writes": {
			"blobs", "blob: keep: infrastructure 403/AuthorizationPermissionMismatch",
			`az role assignment create --role "Storage Blob Data Contributor" --assignee-object-id OBJECT_ID ` +
				`--assignee-principal-type ServicePrincipal --scope ACCOUNT_ID`,
			func(d *deployment) { d.settings["BLOB_CONNECTION"] = d.readOnly() },
			func(d *deployment) { delete(d.settings, "BLOB_CONNECTION") }, "",
		},
	}
}

// Each row is broken once on the local stack. It is the first and only one that is wrong, and ok after its command.
func TestDoctorNamesWhatIsBroken(t *testing.T) {
	d := newDeployment(t)
	found := map[string]string{}
	for name, r := range d.rows() {
		require.Equal(t, ops.RowOK, r.State, "%s: %+v", name, r)
		found[name] = regexp.MustCompile(`[0-9][0-9TZs:+-]*$`).ReplaceAllString(r.Found, "TIME")
	}
	require.Equal(t, map[string]string{
		"sql":    "user func-web; rights and procedures of this build are there, and the ledger is adopted",
		"cosmos": mayUse + "; a document was written and deleted", "servicebus": mayUse,
		"leases": "1 lease of 1 owner, renewed in the last TIME", "blobs": "a file was written and deleted",
		"timer":   "the last tick was at TIME",
		"sign_in": "off: the platform's sign-in is not seen, and the operators' pages refuse everybody",
	}, found)
	for name, f := range faults() {
		t.Run(name, func(t *testing.T) {
			f.harm(d)
			rows := d.rows()
			for at, r := range rows {
				switch {
				case at == f.row:
					require.Equal(t, ops.RowWrong, r.State, "%+v", r)
					require.Contains(t, r.Found, f.found)
					require.Equal(t, f.do, r.Do)
				case f.row == "cosmos" && at == ops.DepTimer: // its counts are there, too
				default:
					require.Equal(t, ops.RowOK, r.State, "%+v", r)
				}
			}
			if f.health != "" {
				says := strings.TrimSuffix(rows[f.row].Found, expires) +
					"; switch it on: " + rows[f.row].Do // of Health, which has one text
				require.Contains(t, says, strings.TrimPrefix(d.healthSays(f.health), f.row+": "))
			}
			if strings.HasPrefix(f.do, "sqlwriterctl ") {
				d.ctl(f.do)
			}
			f.mend(d)
			for at, r := range d.rows() {
				require.Equal(t, ops.RowOK, r.State, "%s: %+v", at, r)
			}
		})
	}
}

// No container is made in a database that may be a wrong one.
func TestDoctorMakesNothingInAWrongDatabase(t *testing.T) {
	d := newDeployment(t)
	d.settings["COSMOS_DATABASE"] = "wrong"
	rows := d.rows()
	for _, name := range []string{"cosmos", "leases"} {
		r := rows[name]
		require.Equal(t, []string{ops.RowWrong, listContainers}, []string{r.State, r.Do}, "%+v", r)
	}
	require.Contains(t, rows["leases"].Found, "nothing is made in what may be a wrong database")
}

// Everything wrong at once is named in one run, and no value of a setting in it.
func TestDoctorNamesEverythingAtOnce(t *testing.T) {
	d := newDeployment(t)
	for name, f := range faults() {
		switch name {
		case "another partition key", "no container of results", "container without time to live":
		default:
			f.harm(d)
		}
	}
	d.settings["WEBSITE_AUTH_ENABLED"] = "true"
	began := time.Now()
	rows := d.rows()
	require.Less(t, time.Since(began), 11*time.Second, "each row has ten")
	for _, name := range []string{"sql", "cosmos", "leases", "servicebus", "blobs", "timer"} {
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

// Leases are judged by their age and number. Those that nobody has are not counted as an owner's.
func TestDoctorJudgesLeases(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	young, old := cosmos.Lease{Owner: "a", RenewedAt: now.Add(-12 * time.Second)},
		cosmos.Lease{RenewedAt: now.Add(-7 * time.Minute)}
	for name, c := range map[string]struct {
		leases           leaseProperties
		age              time.Duration
		state, found, do string
	}{
		"two": {
			leaseProperties{leases: []cosmos.Lease{young, {Owner: "a", RenewedAt: now}}},
			0, ops.RowOK, "2 leases of 1 owner, renewed in the last 12s", "",
		},
		"nobody has one": {
			leaseProperties{leases: []cosmos.Lease{{RenewedAt: now.Add(-leaseOld)}}},
			0, ops.RowNotYet, "no instance has any of 1 lease", "",
		},
		"nobody has one for long": {
			leaseProperties{leases: []cosmos.Lease{{RenewedAt: now.Add(-leaseOld - time.Second)}}},
			0, ops.RowWrong, "1 of 1 lease not renewed, for up to 5m1s", ops.Restart,
		},
		"somebody has one": {
			leaseProperties{leases: []cosmos.Lease{{RenewedAt: now}, young}},
			0, ops.RowOK, "2 leases of 1 owner, renewed in the last 12s", "",
		},
		"none":     {leaseProperties{}, 2 * time.Minute, ops.RowWrong, "never began; look at the rows host and", ops.Restart},
		"none yet": {leaseProperties{}, 119 * time.Second, ops.RowNotYet, "no lease of LEASE_PREFIX yet", ""},
		"old": {
			leaseProperties{leases: []cosmos.Lease{young, old}},
			0, ops.RowWrong, "1 of 2 leases not renewed, for up to 7m0s", ops.Restart,
		},
		"five minutes": {
			leaseProperties{leases: []cosmos.Lease{{Owner: "a", RenewedAt: now.Add(-leaseOld)}}},
			0, ops.RowOK, "in the last 5m0s", "",
		},
		"unreadable": {
			leaseProperties{err: fault.New(fault.Infrastructure, "cosmos: read leases", "408", "no answer")},
			0, ops.RowWrong, "LEASE_CONTAINER: cosmos: read leases: infrastructure 408: no answer", "sqlwriterctl status",
		},
		"another key": {
			leaseProperties{err: fault.New(fault.Infrastructure, "test", cosmos.CodePartitionKey, "it must be /id")},
			0, ops.RowWrong, "LEASE_CONTAINER: test: infrastructure partition_key: it must be /id; look whose it is: ",
			listContainers,
		},
		"no time to live": {
			leaseProperties{without: 1, leases: []cosmos.Lease{old}},
			0, ops.RowWrong, expires, switchOnTimeToLive,
		},
		"no time to live, and nobody's lease": {
			leaseProperties{without: 1},
			0, ops.RowWrong, expires + "; no lease is in it yet: look whose it is", switchOnTimeToLive,
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := bare(t)
			a.status.since, a.status.now = now, func() time.Time { return now.Add(c.age) }
			a.clients.leases = &c.leases
			r := a.lookLeases(t.Context())
			require.Equal(t, []string{c.state, c.do}, []string{r.State, r.Do}, "%+v", r)
			require.Contains(t, r.Found, c.found)
			require.NotContains(t, r.Found, "az ")
		})
	}
}

// Pages that believe a header which anybody can send are wrong; an app without settings believes nobody.
func TestDoctorForgesASignIn(t *testing.T) {
	a := bare(t)
	believes := handlers.Mounted{Run: func(context.Context, handlers.Invocation) (handlers.Reply, error) {
		return handlers.Reply{HTTP: &handlers.HTTPReply{Status: http.StatusOK}}, nil
	}}
	r := a.lookSignIn(t.Context(), believes)
	require.Equal(t, []string{ops.RowWrong, "az functionapp stop -g GROUP -n APP"}, []string{r.State, r.Do})
	for says, set := range map[string]func(){
		"off": func() {}, "on": func() { a.config.SignIn = true }, "open": func() { a.config.OpenUI = true },
	} {
		a.config.SignIn, a.config.OpenUI = false, false
		set()
		r = a.lookSignIn(t.Context(), a.pages())
		require.Equal(t, ops.RowOK, r.State)
		require.True(t, strings.HasPrefix(r.Found, says+": "), r.Found)
	}
}

// What a doctor that was killed left is deleted an hour later, from documents and files, by the app's clock. What it
// sent is deleted after three minutes, also by one that sends nothing.
func TestDoctorSweepsAfterAnHour(t *testing.T) {
	d := newDeployment(t)
	files := d.app().clients.evidence
	require.NoError(t, files.Keep(t.Context(), "doctor/LEFT", []byte("{}")))
	_, err := d.container("sqlwriter-control").CreateItem(t.Context(), azcosmos.NewPartitionKeyString("doctor:web:LEFT"),
		[]byte(`{"id":"doctor:web:LEFT","doctor_of":"web"}`), nil)
	require.NoError(t, err)
	canary := commit.CanaryPrefix + "left"
	require.NoError(t, d.app().clients.results.CreateCanary(t.Context(), canary, commit.CanaryName("web")))
	for _, c := range []struct {
		age        time.Duration
		sent, left bool
	}{{2 * time.Minute, true, true}, {59 * time.Minute, false, true}, {61 * time.Minute, false, false}} {
		a := d.app()
		a.status.now = func() time.Time { return time.Now().Add(c.age) }
		_, err := a.ops.Doctor(t.Context(), ops.DoctorRequest{})
		require.NoError(t, err)
		_, err = a.clients.results.Read(t.Context(), canary)
		require.Equal(t, c.sent, err == nil, "a canary after %s: %v", c.age, err)
		_, err = d.container("sqlwriter-control").ReadItem(t.Context(),
			azcosmos.NewPartitionKeyString("doctor:web:LEFT"), "doctor:web:LEFT", nil)
		require.Equal(t, c.left, err == nil, "a document after %s: %v", c.age, err)
		_, err = a.clients.stored.Read(t.Context(), "doctor/LEFT")
		require.Equal(t, c.left, err == nil, "a file after %s: %v", c.age, err)
	}
}

// The database is looked at anew by an app that has begun long ago. A shadow needs no adoption.
func TestDoctorChecksTheDatabaseAnew(t *testing.T) {
	d := newDeployment(t)
	a := d.app()
	sql := func() ops.DoctorRow {
		t.Helper()
		answer, err := a.ops.Doctor(t.Context(), ops.DoctorRequest{})
		require.NoError(t, err)
		return answer.Rows[0]
	}
	require.Equal(t, ops.RowOK, sql().State)
	require.NoError(t, a.sql.Ready(t.Context()))
	a.db.Store.(*serverAnswers).check = fault.New(fault.Infrastructure, "sqlserver: check", "229", "a right is missing")
	require.Contains(t, sql().Found, "sqlserver: check: infrastructure 229: a right is missing")
	a.db.Store.(*serverAnswers).check = nil
	d.unadopt()
	require.Contains(t, sql().Found, "ledger_not_adopted")
	a.config.Mode = config.ModeShadow
	require.Equal(t, ops.RowOK, sql().State)
	require.Contains(t, a.looks()[1].At(t.Context()).Found, "a shadow needs no adopted ledger")
}
