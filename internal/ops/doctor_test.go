package ops_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/condition"
	"sqlwriter/internal/events"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
)

// doctored is a deployment in which nothing is wrong. Cases break it.
type doctored struct {
	*world
	looks    []ops.Look
	mappings []invoice.Recorded
	counts   ops.CountsStore
	// told are the conditions of the status that doctor has told.
	told []string
}

func newDoctored(t *testing.T) *doctored {
	t.Helper()
	d := &doctored{world: newWorld(t)}
	require.NoError(t, d.ops.SaveCounts(t.Context()))
	d.counts = d.world.counts
	d.looks = []ops.Look{finds("sql", ops.DoctorRow{State: ops.RowOK, Found: "as it must be"})}
	return d
}

// finds is a look that finds something.
func finds(row string, found ops.DoctorRow) ops.Look {
	return ops.Look{Row: row, At: func(context.Context) ops.DoctorRow { return found }}
}

func (d *doctored) stores(ctx context.Context) (ops.Stores, error) {
	s, err := d.world.stores(ctx)
	s.Mapping = invoice.DefaultMapping()
	s.Mappings = func(context.Context) ([]invoice.Recorded, error) { return d.mappings, nil }
	return s, err
}

func (d *doctored) rows() []ops.DoctorRow {
	d.t.Helper()
	o := ops.New(ops.Ports{Breaker: d.breaker, Counts: d.counts, Doctor: d.looks, Stores: d.stores},
		ops.Options{
			SysName: "web", Mapping: "another.json", Now: func() time.Time { return d.clock },
			Log: func(ctx context.Context) events.Log { return events.For(ctx, zerolog.New(&d.log)) },
		})
	answer := must(o.Doctor(d.t.Context(), ops.DoctorRequest{}))(d.t)
	status := must(o.Status(d.t.Context(), ops.StatusQuery{}))(d.t)
	for _, a := range status.Attention { // the table's words, then the status's
		c, _ := condition.Of(a.Code)
		for _, r := range []ops.DoctorRow{answer.Rows[0], answer.Rows[len(answer.Rows)-1]} {
			if words, same := strings.CutPrefix(r.Found, c.Says()+": "); same {
				require.Contains(d.t, a.Says, words)
				d.told = append(d.told, a.Code)
			}
		}
	}
	return answer.Rows
}

func TestTheWorstOfALookCounts(t *testing.T) {
	d := newDoctored(t)
	ok := ops.DoctorRow{State: ops.RowOK, Found: "there"}
	notYet := ops.DoctorRow{State: ops.RowNotYet, Found: "soon"}
	unseen := ops.DoctorRow{State: ops.RowNotLooked, Found: "who knows"}
	first, second := ops.DoctorRow{State: ops.RowWrong, Found: "a", Do: "mend a"},
		ops.DoctorRow{State: ops.RowWrong, Found: "b", Do: "mend b"}
	all := map[string][]ops.DoctorRow{
		"same": {ok, ok, {State: ops.RowOK, Found: "tried"}}, "unseen": {ok, unseen, ok},
		"not yet": {unseen, notYet, ok}, "wrong": {ok, first, second, first, notYet},
	}
	want := []ops.DoctorRow{{Name: "sql", State: ops.RowOK, Found: "as it must be"}}
	for name, row := range map[string]ops.DoctorRow{
		"same": {State: ops.RowOK, Found: "there; tried"}, "unseen": unseen, "not yet": notYet,
		"wrong": {State: ops.RowWrong, Found: "a; b", Do: "mend a"},
	} {
		for _, found := range all[name] {
			d.looks = append(d.looks, finds(name, found))
		}
		row.Name = name
		want = append(want, row)
	}
	want = append(want,
		ops.DoctorRow{Name: "timer", State: ops.RowOK, Found: "the last tick was at 2025-12-18T16:00:00Z"})
	require.Equal(t, want, d.rows())
}

// Doctor says of a condition what Health and the status say.
func TestDoctorSeesConditions(t *testing.T) {
	says := func(code string) string {
		c, _ := condition.Of(code)
		return c.Says() + ": "
	}
	var told []string
	for name, c := range map[string]struct {
		harm                  func(t *testing.T, d *doctored)
		row, state, found, do string
	}{
		"nothing": {func(*testing.T, *doctored) {}, "sql", ops.RowOK, "as it must be", ""},
		"another mapping": {
			func(_ *testing.T, d *doctored) { d.mappings = []invoice.Recorded{{Version: 99}} }, "sql", ops.RowWrong,
			says(condition.OtherMapping) + "the app's mapping is another.json, and the last `sqlwriterctl migrate up` chose version 99: lines of the other one are not_comparable, unless all its columns stand unchanged in the app's; if the app's is meant, `sqlwriterctl migrate up --new-mapping` says so",
			"sqlwriterctl migrate up --new-mapping",
		},
		"the same mapping": {
			func(_ *testing.T, d *doctored) {
				d.mappings = []invoice.Recorded{{Version: invoice.DefaultMapping().Version()}}
			}, "sql", ops.RowOK, "as it must be", "",
		},
		"another database": {func(t *testing.T, d *doctored) {
			older := d.sink.Backup()
			require.NoError(t, d.breaker.Tick(t.Context()))
			d.sink.Restore(older)
			require.True(t, breaker.Refused(d.breaker.Tick(t.Context())))
		}, "sql", ops.RowWrong, says(condition.DatabaseRefused) + "the flow is stopped", "sqlwriterctl explain database_refused"},
		"a silent timer": {
			func(_ *testing.T, d *doctored) { d.clock = d.clock.Add(11 * time.Minute) }, "timer", ops.RowWrong,
			says(condition.TimerSilent) + "the timer is silent since 2025-12-18T16:00:00Z",
			"sqlwriterctl explain timer_silent",
		},
		"a timer that has not counted": {
			func(t *testing.T, d *doctored) { require.NoError(t, d.counts.StoreCounts(t.Context(), ops.Saved{})) },
			"timer", ops.RowNotYet, "the timer has not counted yet", "",
		},
		"counts that cannot be read": {func(_ *testing.T, d *doctored) {
			d.counts = noCounts{fault.New(fault.Infrastructure, "test", "refused", "it says no")}
		}, "timer", ops.RowNotLooked, "it says no", ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDoctored(t)
			c.harm(t, d)
			for _, r := range d.rows() {
				if r.Name != c.row {
					require.Equal(t, ops.RowOK, r.State, "%+v", r)
					continue
				}
				require.Equal(t, []string{c.state, c.do}, []string{r.State, r.Do}, "%+v", r)
				require.Contains(t, r.Found, c.found)
			}
			told = append(told, d.told...)
		})
	}
	require.ElementsMatch(t, []string{condition.OtherMapping, condition.DatabaseRefused, condition.TimerSilent}, told,
		"each is the status's, too")
}

// noCounts is a store of counts that fails.
type noCounts struct{ err error }

func (n noCounts) LoadCounts(context.Context) (ops.Saved, error) { return ops.Saved{}, n.err }

func (n noCounts) StoreCounts(context.Context, ops.Saved) error { return n.err }

// A look that panics is a row that is wrong. It ends neither the process nor another look.
func TestALookThatPanics(t *testing.T) {
	d := newDoctored(t)
	d.looks = append(d.looks, ops.Look{Row: "blobs", At: func(context.Context) ops.DoctorRow { panic("marked") }})
	require.Equal(t, []ops.DoctorRow{
		{Name: "sql", State: ops.RowOK, Found: "as it must be"},
		{
			Name: "blobs", State: ops.RowWrong, Found: "ops: doctor: internal panic: a panic of ours: string",
			Do: "sqlwriterctl explain panic",
		},
		{Name: "timer", State: ops.RowOK, Found: "the last tick was at 2025-12-18T16:00:00Z"},
	}, d.rows())
	require.Contains(t, d.log.String(), "doctor_test.go")
	require.NotContains(t, d.log.String(), "marked")
}

// A service that never answers costs ten seconds and hides no other row, also where an adapter does not see that its
// time is over.
func TestARowIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoctored(t)
		for _, row := range []string{"cosmos", "leases", "servicebus"} {
			d.looks = append(d.looks, ops.Look{Row: row, At: func(ctx context.Context) ops.DoctorRow {
				<-ctx.Done()
				return ops.DoctorRow{State: ops.RowWrong, Found: row + " does not answer", Do: "mend it"}
			}})
		}
		began, deaf := time.Now(), make(chan struct{})
		for range 2 {
			d.looks = append(d.looks, ops.Look{Row: "blobs", At: func(context.Context) ops.DoctorRow {
				<-deaf
				return ops.DoctorRow{}
			}})
		}
		d.looks = append(d.looks, finds("sign_in", ops.DoctorRow{State: ops.RowOK, Found: "on"}))
		rows := d.rows()
		require.Equal(t, 10*time.Second, time.Since(began))
		close(deaf)
		for i, want := range []string{
			"", "cosmos does not answer", "leases does not answer", "servicebus does not answer",
			"no answer in 10s",
		} {
			if want != "" {
				require.Equal(t, []string{ops.RowWrong, want}, []string{rows[i].State, rows[i].Found})
				require.NotEmpty(t, rows[i].Do)
			}
		}
		for _, i := range []int{0, 5, 6} {
			require.Equal(t, ops.RowOK, rows[i].State, "%+v", rows[i])
		}
		require.Len(t, rows, 7)
	})
}
