package ops_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/condition"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
)

// trial remembers what it was asked.
type trial struct {
	err    error
	tried  []string
	before time.Time
}

func (k *trial) Try(_ context.Context, id string) error {
	k.tried = append(k.tried, id)
	return k.err
}

func (k *trial) Sweep(_ context.Context, before time.Time) error {
	k.before = before
	return nil
}

// healthy is a deployment in which nothing is wrong. Cases break it.
type healthy struct {
	ops.DoctorPorts

	world            *world
	view             ops.DatabaseView
	databaseErr      error
	leases           []ops.Lease
	leasesErr        error
	documents, files *trial
	container, queue error
	signIn           ops.SignInView
}

func newHealthy(t *testing.T) *healthy {
	t.Helper()
	w := newWorld(t)
	require.NoError(t, w.ops.SaveCounts(t.Context()))
	renewed := w.clock.Add(-12 * time.Second)
	return &healthy{
		world: w, view: ops.DatabaseView{User: "func-web", At: w.clock},
		leases:    []ops.Lease{{Owner: "a", RenewedAt: renewed}, {Owner: "b", RenewedAt: w.clock}},
		documents: &trial{}, files: &trial{}, signIn: ops.SignInView{Says: "on"},
		DoctorPorts: ops.DoctorPorts{Began: w.clock.Add(-time.Hour)},
	}
}

func (h *healthy) rows(t *testing.T) map[string]ops.DoctorRow {
	t.Helper()
	p := h.DoctorPorts
	if p.Database == nil {
		p.Database = func(context.Context) (ops.DatabaseView, error) { return h.view, h.databaseErr }
	}
	there := func(context.Context) error { return nil }
	p.Containers = []ops.Place{
		{Setting: "COSMOS_CONTAINER", Look: there},
		{Setting: "LEASE_CONTAINER", Look: func(context.Context) error { return h.container }},
	}
	p.Queues = []ops.Place{
		{Setting: "RUNS_QUEUE", Look: func(context.Context) error { return h.queue }},
		{Setting: "BATCHES_QUEUE", Look: func(context.Context) error { return h.queue }},
	}
	p.Leases = func(context.Context) ([]ops.Lease, error) { return h.leases, h.leasesErr }
	p.Documents, p.Files = h.documents, h.files
	p.SignIn = func(context.Context) (ops.SignInView, error) { return h.signIn, nil }
	p.Explain = func(_ string, err error) (found, do string) { return err.Error(), "mend " + fault.CodeOf(err) }
	ports := ops.Ports{Breaker: h.world.breaker, Counts: h.world.counts, Doctor: &p}
	o := ops.New(ports, ops.Options{SysName: "web", Now: func() time.Time { return h.world.clock }})
	answer := must(o.Doctor(t.Context(), ops.DoctorRequest{}))(t)
	rows, names := map[string]ops.DoctorRow{}, []string(nil)
	for _, r := range answer.Rows {
		rows[r.Name] = r
		names = append(names, r.Name)
	}
	require.Equal(t, []string{"sql", "cosmos", "leases", "servicebus", "blobs", "sign_in", "timer"}, names)
	return rows
}

func TestADeploymentThatIsAsItMustBe(t *testing.T) {
	h := newHealthy(t)
	found := map[string]string{}
	for name, r := range h.rows(t) {
		require.Equal(t, ops.RowOK, r.State, "%+v", r)
		require.Empty(t, r.Do)
		found[name] = r.Found
	}
	require.Equal(t, map[string]string{
		"sql":        "user func-web; rights, procedures of this build, adoption and clock are as they must be",
		"cosmos":     "COSMOS_CONTAINER, LEASE_CONTAINER: there, and allowed; written and deleted",
		"leases":     "2 leases of 2 owners, renewed in the last 12s",
		"servicebus": "RUNS_QUEUE, BATCHES_QUEUE: there, and allowed",
		"blobs":      "written and deleted", "sign_in": "on", "timer": "the last tick was at 2025-12-18T16:00:00Z",
	}, found)
	h.rows(t)
	for _, k := range []*trial{h.documents, h.files} {
		require.Len(t, k.tried, 2)
		require.NotEqual(t, k.tried[0], k.tried[1], "two doctors do not meet")
		require.Equal(t, start().Add(-time.Hour), k.before)
	}
}

func TestEachRowOfADeploymentBroken(t *testing.T) {
	refused := fault.New(fault.Infrastructure, "test", "refused", "it says no")
	silent, _ := condition.Of(condition.TimerSilent)
	for name, c := range map[string]struct {
		harm                  func(t *testing.T, h *healthy)
		row, state, found, do string
	}{
		"the database refuses": {
			func(_ *testing.T, h *healthy) { h.databaseErr = refused },
			"sql", ops.RowWrong, refused.Error(), "mend refused",
		},
		"SQL's clock is ahead": {
			func(_ *testing.T, h *healthy) { h.view.At = h.view.At.Add(10 * time.Minute) }, "sql", ops.RowWrong,
			"the clocks of this instance and of SQL differ by 10m0s", "az functionapp restart -g GROUP -n APP",
		},
		"SQL's clock is behind, and it refuses": {
			func(_ *testing.T, h *healthy) { h.view.At, h.databaseErr = h.view.At.Add(-10*time.Minute), refused },
			"sql", ops.RowWrong, refused.Error() + "; the clocks of this instance and of SQL differ by 10m0s",
			"mend refused",
		},
		"another mapping": {
			func(_ *testing.T, h *healthy) { h.view.OtherMapping = true }, "sql", ops.RowWrong,
			"other_mapping: ", "sqlwriterctl migrate up --new-mapping",
		},
		"another database": {func(t *testing.T, h *healthy) {
			older := h.world.sink.Backup()
			require.NoError(t, h.world.breaker.Tick(t.Context()))
			h.world.sink.Restore(older)
			require.True(t, breaker.Refused(h.world.breaker.Tick(t.Context())))
		}, "sql", ops.RowWrong, "database_refused: ", ""},
		"a container": {
			func(_ *testing.T, h *healthy) { h.container = refused }, "cosmos", ops.RowWrong,
			"LEASE_CONTAINER: " + refused.Error(), "mend refused",
		},
		"a document": {
			func(_ *testing.T, h *healthy) { h.documents.err = refused }, "cosmos", ops.RowWrong,
			refused.Error(), "mend refused",
		},
		"leases that cannot be read": {
			func(_ *testing.T, h *healthy) { h.leasesErr = refused },
			"leases", ops.RowWrong, refused.Error(), "mend refused",
		},
		"no lease": {
			func(_ *testing.T, h *healthy) { h.leases = nil }, "leases", ops.RowWrong,
			"no lease of LEASE_PREFIX: the trigger of CommitResults never began", "az functionapp restart -g GROUP -n APP",
		},
		"no lease yet": {
			func(_ *testing.T, h *healthy) { h.leases, h.Began = nil, start() }, "leases", ops.RowNotYet,
			"no lease of LEASE_PREFIX yet", "",
		},
		"a lease that nobody renews": {
			func(_ *testing.T, h *healthy) { h.leases[1].RenewedAt = start().Add(-7 * time.Minute) },
			"leases", ops.RowWrong, "1 of 2 leases not renewed, for up to 7m0s",
			"az functionapp restart -g GROUP -n APP",
		},
		"queues": {
			func(_ *testing.T, h *healthy) { h.queue = refused }, "servicebus", ops.RowWrong,
			"RUNS_QUEUE, BATCHES_QUEUE: " + refused.Error(), "mend refused",
		},
		"a file": {
			func(_ *testing.T, h *healthy) { h.files.err = refused },
			"blobs", ops.RowWrong, refused.Error(), "mend refused",
		},
		"a forged sign-in": {
			func(_ *testing.T, h *healthy) { h.signIn.Forged = true }, "sign_in", ops.RowWrong,
			"the operators' pages believe a forged header", "az functionapp stop -g GROUP -n APP",
		},
		"a silent timer": {func(_ *testing.T, h *healthy) {
			h.world.clock = h.world.clock.Add(11 * time.Minute)
			h.view.At, h.leases = h.world.clock, []ops.Lease{{RenewedAt: h.world.clock}}
		}, "timer", ops.RowWrong, "timer_silent: " + silent.Means, silent.Do},
		"a timer that has not counted": {
			func(t *testing.T, h *healthy) {
				require.NoError(t, h.world.counts.StoreCounts(t.Context(), ops.Saved{}))
			},
			"timer", ops.RowNotYet, "the timer has not counted yet", "",
		},
		"counts that cannot be read": {
			func(_ *testing.T, h *healthy) { h.world.counts = noCounts{refused} },
			"timer", ops.RowNotLooked, "it says no", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHealthy(t)
			c.harm(t, h)
			for at, r := range h.rows(t) {
				if at != c.row {
					require.Equal(t, ops.RowOK, r.State, "%+v", r)
					continue
				}
				require.Equal(t, c.state, r.State, "%+v", r)
				require.Contains(t, r.Found, c.found)
				if c.do != "" || c.state != ops.RowWrong {
					require.Equal(t, c.do, r.Do)
				}
				require.Equal(t, c.state == ops.RowWrong, r.Do != "")
			}
		})
	}
}

// noCounts is a store of counts that fails.
type noCounts struct{ err error }

func (n noCounts) LoadCounts(context.Context) (ops.Saved, error) { return ops.Saved{}, n.err }

func (n noCounts) StoreCounts(context.Context, ops.Saved) error { return n.err }

// A service that never answers costs ten seconds, and hides none of the other rows.
func TestARowIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHealthy(t)
		h.Database = func(ctx context.Context) (ops.DatabaseView, error) {
			<-ctx.Done()
			return ops.DatabaseView{}, fault.Wrap(fault.Infrastructure, "test", "deadline", "no answer", ctx.Err())
		}
		h.files.err = fault.New(fault.Infrastructure, "test", "refused", "it says no")
		began := time.Now()
		rows := h.rows(t)
		require.Equal(t, 10*time.Second, time.Since(began))
		require.Contains(t, rows["sql"].Found, "no answer")
		require.Equal(t, "mend refused", rows["blobs"].Do)
		require.Equal(t, ops.RowOK, rows["cosmos"].State)
	})
}

func TestACommandIsTheFirstOfAText(t *testing.T) {
	for text, want := range map[string]string{
		"look, then `az a b` or `sqlwriterctl c`": "az a b",
		"read `MODE`, then `sqlwriterctl status`": "sqlwriterctl status",
		"nothing": "nothing",
	} {
		require.Equal(t, want, ops.Command(text))
	}
	require.Empty(t, must(ops.New(ops.Ports{Breaker: breaker.New(nil, breaker.Options{})}, ops.Options{}).Doctor(
		t.Context(), ops.DoctorRequest{}))(t).Rows)
}
