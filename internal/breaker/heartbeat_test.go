package breaker_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/test/inmem"
)

func newDatabaseBreaker(st *store, db commit.Sink, name string) *breaker.Breaker {
	return breaker.New(st, breaker.Options{
		Instance: name, Build: "build 1", SysName: "web", Heartbeat: db.Heartbeat, TakeOver: db.TakeOver,
		Draw: func() float64 { return 0 },
	})
}

func database() *inmem.Sink {
	db := inmem.NewSink()
	db.AddLines(1)
	return db
}

// write makes a request for a document, which the database applies, and records the success.
func write(t *testing.T, b *breaker.Breaker, db commit.Sink) error {
	t.Helper()
	begin := time.Now()
	err := b.Do(t.Context(), 1, 0, func(ctx context.Context, known breaker.Heartbeat) error {
		mark := commit.Item{
			DocumentID: "x", FailureMark: true, Main: 1, Hash: "h", HashVersion: 1,
			Values:  invoice.DefaultMapping().MarkValues(),
			Version: invoice.Version{US: time.Now().UnixMicro(), Key: invoice.Key("x")},
		}
		_, err := db.Apply(ctx, []commit.Item{mark}, commit.Write, known)
		return err
	})
	if err == nil {
		b.Applied(begin)
		b.Note(t.Context(), breaker.FeedLag{})
	}
	return err
}

func row(db *inmem.Sink) breaker.Heartbeat {
	found, _ := db.Heartbeats("web")
	return breaker.Heartbeat{SysName: "web", DatabaseID: found.DatabaseID, Number: found.Number}
}

// set replaces the heartbeat row, as a restore does.
func set(db *inmem.Sink, is breaker.Heartbeat) {
	db.SetHeartbeat("web", inmem.HeartbeatRow{DatabaseID: is.DatabaseID, Number: is.Number})
}

// Applied content and its number enter the control document together: at most every five seconds, and by a tick if
// previewSink is applied.
func TestTheHeartbeatIsRaisedBeforeASuccessIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, db := &store{}, database()
		b := newDatabaseBreaker(st, db, "a")
		require.NoError(t, write(t, b, db))
		require.Equal(t, 1, st.puts, "one write")
		require.NotZero(t, row(db))
		require.Equal(t, row(db), st.control.Heartbeat)
		require.Equal(t, time.Now(), st.control.AppliedBy("build 1"))

		first := row(db)
		time.Sleep(4 * time.Second)
		require.NoError(t, write(t, b, db))
		require.Equal(t, first, row(db))
		time.Sleep(2 * time.Second)
		require.NoError(t, write(t, b, db))
		require.Greater(t, row(db).Number, first.Number)
		require.Equal(t, row(db), st.control.Heartbeat)
		require.Equal(t, 2, st.puts)

		first = row(db)
		time.Sleep(time.Minute)
		require.NoError(t, b.Tick(t.Context()))
		require.Greater(t, row(db).Number, first.Number)
		require.Equal(t, row(db), st.control.Heartbeat)

		broken := fault.New(fault.Infrastructure, "test", "40613", "no answer")
		ill := breaker.New(st,
			breaker.Options{
				Build: "build 1", SysName: "web",
				Heartbeat: func(context.Context, breaker.Heartbeat) (breaker.Heartbeat, error) {
					return breaker.Heartbeat{}, broken
				},
			})
		logged := st.control.AppliedBy("build 1")
		time.Sleep(time.Minute)
		require.NoError(t, write(t, ill, db))
		require.Equal(t, logged, st.control.AppliedBy("build 1"),
			"a success whose heartbeat is not committed is recorded later")
	})
}

// A copy or another database is never written to. The first refusal stops all instances, and the stop ends when the
// former database is back.
func TestADatabaseThatWentBackStopsAtOnceAndEndsByItself(t *testing.T) {
	for name, back := range map[string]func(known breaker.Heartbeat) breaker.Heartbeat{
		breaker.CodeWentBack + " by one": func(k breaker.Heartbeat) breaker.Heartbeat { k.Number--; return k },
		breaker.CodeWentBack + " by an hour": func(k breaker.Heartbeat) breaker.Heartbeat {
			k.Number -= 3_600_000
			return k
		},
		breaker.CodeOtherDatabase: func(k breaker.Heartbeat) breaker.Heartbeat {
			k.DatabaseID, k.Number = "other", k.Number+1
			return k
		},
		breaker.CodeOtherDatabase + " anew": func(breaker.Heartbeat) breaker.Heartbeat {
			return breaker.Heartbeat{SysName: "web"}
		},
	} {
		for how, ask := range map[string]func(t *testing.T, b *breaker.Breaker, db *inmem.Sink) error{
			"a request": func(t *testing.T, b *breaker.Breaker, db *inmem.Sink) error {
				t.Helper()
				return write(t, b, db)
			},
			"a tick": func(t *testing.T, b *breaker.Breaker, _ *inmem.Sink) error {
				t.Helper()
				return b.Tick(t.Context())
			},
		} {
			t.Run(name+", by "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					st, db := &store{}, database()
					a, b := newDatabaseBreaker(st, db, "a"), newDatabaseBreaker(st, db, "b")
					require.NoError(t, write(t, a, db))
					require.NoError(t, write(t, b, db))
					good := row(db)
					set(db, back(good))
					begin := time.Now()
					written, _ := db.Entry(1)

					err := ask(t, a, db)
					require.True(t, breaker.Refused(err), "%v", err)
					require.Equal(t, begin, time.Now(), "it is not repeated")
					state := st.control.Breaker
					require.Equal(t, []any{breaker.Open, fault.Infrastructure, fault.CodeOf(err)},
						[]any{state.Name, state.Kind, state.Code})
					require.Contains(t, name, state.Code)
					require.True(t, state.RefusesDatabase())
					require.NotEmpty(t, state.Reason)
					require.Len(t, st.control.Transitions, 1)
					time.Sleep(6 * time.Second) // the others see it
					require.True(t, breaker.IsRefusal(b.Permit(t.Context())))
					for range 200 {
						time.Sleep(3 * time.Second)
						for _, i := range []*breaker.Breaker{a, b} {
							require.Error(t, i.Permit(t.Context()))
							require.Error(t, write(t, i, db))
						}
					}
					is, _ := db.Entry(1)
					require.Equal(t, written, is)
					require.Equal(t, back(good), row(db), "no probe raised what it refused")
					require.Equal(t, good, st.control.Heartbeat)

					set(db, good) // the failback
					time.Sleep(80 * time.Second)
					require.NoError(t, a.Permit(t.Context()), "a probe found out")
					for range 4 {
						time.Sleep(6 * time.Second)
						require.NoError(t, write(t, a, db))
					}
					require.Equal(t, breaker.Closed, st.control.Breaker.Name)
				})
			})
		}
	}
}

func TestOnlyAForcedResumeAcceptsADatabaseThatWentBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, db := &store{}, database()
		a, b := newDatabaseBreaker(st, db, "a"), newDatabaseBreaker(st, db, "b")
		require.NoError(t, write(t, b, db))
		good := row(db)
		old := good
		old.Number -= 60_000
		set(db, old)
		require.Error(t, a.Tick(t.Context()))

		err := b.Resume(t.Context(), "ann", "it looks well")
		require.True(t, breaker.Refused(err), "%v", err)
		require.ErrorContains(t, err, "missing")
		for _, number := range []breaker.Heartbeat{good, old} {
			require.ErrorContains(t, err, time.UnixMilli(number.Number).UTC().Format(time.RFC3339), "both are named")
		}
		require.Equal(t, breaker.Open, st.control.Breaker.Name)

		taken, err := b.Force(t.Context(), "ann", "we lost a minute")
		require.NoError(t, err)
		require.True(t, taken)
		is := row(db)
		require.NotEqual(t, good.DatabaseID, is.DatabaseID)
		require.Greater(t, is.Number, good.Number)
		require.Equal(t, is, st.control.Heartbeat)
		last := st.control.Transitions[len(st.control.Transitions)-1]
		require.Equal(t, []any{"ann", "we lost a minute"}, []any{last.By, last.Why})
		require.Contains(t, last.Forced, is.DatabaseID)
		require.Equal(t, time.UnixMilli(old.Number).UTC(), last.Copied, "it lacks what was written since")
		time.Sleep(6 * time.Second)
		require.NoError(t, write(t, a, db), "every instance goes by the new one")

		set(db, good) // a failback to the abandoned database
		require.Equal(t, breaker.CodeOtherDatabase, fault.CodeOf(write(t, a, db)), "it lacks what was written since")

		require.NoError(t, a.Pause(t.Context(), "ann", "x"))
		taken, err = a.Force(t.Context(), "ann", "we go back to it")
		require.NoError(t, err)
		require.True(t, taken, "behind a pause, too")
		last = st.control.Transitions[len(st.control.Transitions)-1]
		require.True(t, last.Copied.IsZero(), "of another database nobody knows what it has")
	})
}

// A restored database is accepted whatever the flow's state, and the one that is known is not taken over.
func TestARestoredDatabaseIsAcceptedInEveryState(t *testing.T) {
	for name, before := range map[string]func(*testing.T, *breaker.Breaker){
		"running": func(*testing.T, *breaker.Breaker) {},
		"stopped": func(t *testing.T, b *breaker.Breaker) { t.Helper(); require.Error(t, b.Tick(t.Context())) },
		"paused": func(t *testing.T, b *breaker.Breaker) {
			t.Helper()
			require.NoError(t, b.Pause(t.Context(), "ann", "a restore"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st, db := &store{}, database()
				a := newDatabaseBreaker(st, db, "a")
				require.NoError(t, write(t, a, db))
				good := row(db)
				taken, err := a.Force(t.Context(), "ann", "to be sure")
				require.NoError(t, err)
				require.False(t, taken)
				require.Equal(t, good.DatabaseID, row(db).DatabaseID)
				require.Empty(t, st.control.Transitions, "nothing changed")

				old := good
				old.Number -= 60_000
				set(db, old)
				before(t, a)
				taken, err = a.Force(t.Context(), "ann", "restored")
				require.NoError(t, err)
				require.True(t, taken)
				require.Equal(t, row(db), st.control.Heartbeat)
				last := st.control.Transitions[len(st.control.Transitions)-1]
				require.Equal(t, []any{"ann", "restored", breaker.HalfOpen}, []any{last.By, last.Why, last.To})
				require.Contains(t, last.Forced, row(db).DatabaseID)
				require.NoError(t, write(t, a, db))
				set(db, good)
				require.Equal(t, breaker.CodeOtherDatabase, fault.CodeOf(write(t, a, db)))
			})
		})
	}
}

// An outage of a refused database does not identify the database.
func TestAnOutageDoesNotHideARefusal(t *testing.T) {
	for _, kind := range []fault.Kind{fault.Infrastructure, fault.Throttled, fault.Quota} {
		synctest.Test(t, func(t *testing.T) {
			st, db := &store{}, database()
			down := false
			a := breaker.New(st, breaker.Options{
				Instance: "a", Build: "build 1", SysName: "web", TakeOver: db.TakeOver,
				Heartbeat: func(ctx context.Context, known breaker.Heartbeat) (breaker.Heartbeat, error) {
					if down {
						return breaker.Heartbeat{}, fault.New(kind, "test", "away", "no answer")
					}
					return db.Heartbeat(ctx, known)
				},
			})
			require.NoError(t, write(t, a, db))
			back := row(db)
			back.Number--
			set(db, back)
			require.True(t, breaker.Refused(a.Tick(t.Context())))
			is := st.control.Breaker
			down = true
			time.Sleep(90 * time.Second)
			require.Equal(t, "away", fault.CodeOf(a.Tick(t.Context())))
			require.True(t, st.control.Breaker.RefusesDatabase())
			require.Equal(t, is.Reason, st.control.Breaker.Reason)
			require.InDelta(t, 60, time.Until(st.control.Breaker.OpenUntil).Seconds(), 7)
			require.True(t, breaker.Refused(a.Resume(t.Context(), "ann", "it is back")))
		})
	}
}

// Another transaction locks the heartbeat's row. Requests for documents read it and are answered, so this is not an
// outage for any instance.
func TestALockOnTheHeartbeatStopsNobodyWhileDocumentsAreApplied(t *testing.T) {
	for _, ticker := range []string{"the timer's own instance applies", "another instance applies"} {
		t.Run(ticker, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st, db := &store{}, database()
				var locked atomic.Bool
				var waits atomic.Int64
				over := func(name string) *breaker.Breaker {
					return breaker.New(st, breaker.Options{
						Instance: name, Build: "build 1", SysName: "web", TakeOver: db.TakeOver,
						Heartbeat: func(ctx context.Context, known breaker.Heartbeat) (breaker.Heartbeat, error) {
							if locked.Load() {
								waits.Add(1)
								time.Sleep(5 * time.Second)
								return breaker.Heartbeat{}, fault.New(fault.Contention, "test", "1222", "locked")
							}
							return db.Heartbeat(ctx, known)
						},
					})
				}
				a := over("a")
				ticks := a
				if ticker == "another instance applies" {
					ticks = over("ticks")
				}
				require.NoError(t, write(t, a, db))
				require.NoError(t, ticks.Tick(t.Context()))
				good := row(db)
				locked.Store(true)
				done := make(chan struct{})
				go func() {
					defer close(done)
					for range 600 {
						time.Sleep(time.Second)
						assert.NoError(t, write(t, a, db))
					}
				}()
				for range 2 {
					time.Sleep(10 * time.Second)
					begin := time.Now()
					require.NoError(t, ticks.Tick(t.Context()), "the tick's own work goes on")
					require.Less(t, time.Since(begin), time.Minute)
					time.Sleep(280 * time.Second)
				}
				<-done
				require.Empty(t, st.control.Breaker.Name)
				require.False(t, a.Seen().CutOff || ticks.Seen().CutOff)
				require.Less(t, waits.Load(), int64(20), "it is tried once a minute")
				require.WithinDuration(t, time.Now(), st.control.AppliedBy("build 1"), 15*time.Second,
					"applied content is recorded")
				require.Equal(t, good.Number, st.control.Heartbeat.Number)

				locked.Store(false)
				time.Sleep(time.Minute)
				require.NoError(t, write(t, a, db))
				require.Greater(t, st.control.Heartbeat.Number, good.Number)
			})
		})
	}
}

// A takeover that is not in the control document does not count: the flow stays stopped, and the operator repeats it.
func TestATakeoverThatNobodyLearnedOfIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, db := &store{}, database()
		a := newDatabaseBreaker(st, db, "a")
		require.NoError(t, write(t, a, db))
		good := row(db)
		set(db, breaker.Heartbeat{})
		require.Error(t, a.Tick(t.Context()))
		st.readOnly = true
		_, err := a.Force(t.Context(), "ann", "x")
		require.Error(t, err)
		st.readOnly = false
		time.Sleep(80 * time.Second)
		require.Equal(t, breaker.CodeOtherDatabase, fault.CodeOf(a.Tick(t.Context())),
			"it does not go on without an audit entry")
		require.Equal(t, good, st.control.Heartbeat)
		_, err = a.Force(t.Context(), "ann", "x")
		require.NoError(t, err)
		require.NoError(t, write(t, a, db))
	})
}

// There is no database to accept if the failback came first, or if the command ran with the former database's address.
func TestForceTakesOverOnlyWhatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, db := &store{}, database()
		a := newDatabaseBreaker(st, db, "a")
		require.NoError(t, write(t, a, db))
		good := row(db)
		set(db, breaker.Heartbeat{})
		require.Error(t, a.Tick(t.Context()))
		set(db, good)
		taken, err := a.Force(t.Context(), "ann", "x")
		require.NoError(t, err)
		require.False(t, taken)
		require.Equal(t, good.DatabaseID, row(db).DatabaseID)
		require.Equal(t, row(db), st.control.Heartbeat)
		last := st.control.Transitions[len(st.control.Transitions)-1]
		require.Equal(t, []any{"ann", breaker.HalfOpen, ""}, []any{last.By, last.To, last.Forced})
		require.NoError(t, write(t, a, db))
	})
}

// Two operators force at the same time: one gets an error, and the control document has the row of the database.
func TestTwoOperatorsForceAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, db := &store{}, database()
		a, kims := newDatabaseBreaker(st, db, "a"), newDatabaseBreaker(st, db, "b")
		require.NoError(t, write(t, a, db))
		set(db, breaker.Heartbeat{})
		require.Error(t, a.Tick(t.Context()))
		anns := breaker.New(st, breaker.Options{
			Build: "build 1", SysName: "web", Heartbeat: db.Heartbeat,
			TakeOver: func(ctx context.Context, known breaker.Heartbeat) (breaker.Heartbeat, error) {
				taken, err := db.TakeOver(ctx, known)
				_, kim := kims.Force(ctx, "kim", "at once")
				require.NoError(t, kim)
				return taken, err
			},
		})
		_, err := anns.Force(t.Context(), "ann", "x")
		require.Equal(t, fault.Contention, fault.KindOf(err), "%v", err)
		require.Equal(t, row(db), st.control.Heartbeat)
		time.Sleep(6 * time.Second)
		require.NoError(t, write(t, a, db))
	})
}

// A heartbeat of a tick or a probe that began before the operator's command does not stop the flow again.
func TestAHeartbeatFromBeforeATakeoverStopsNobody(t *testing.T) {
	for name, ask := range map[string]func(b *breaker.Breaker, ctx context.Context) error{
		"tick":  (*breaker.Breaker).Tick,
		"probe": (*breaker.Breaker).Permit,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st, db := &store{}, database()
				a := newDatabaseBreaker(st, db, "a")
				require.NoError(t, write(t, a, db))
				b := breaker.New(st, breaker.Options{
					Instance: "b", Build: "build 1", SysName: "web", TakeOver: db.TakeOver,
					Heartbeat: func(_ context.Context, known breaker.Heartbeat) (breaker.Heartbeat, error) {
						if name == "tick" {
							set(db, breaker.Heartbeat{})
							require.Error(t, a.Tick(t.Context()))
						}
						_, err := a.Force(t.Context(), "ann", "x")
						require.NoError(t, err)
						return breaker.Heartbeat{}, known.Refuse("test", row(db))
					},
				})
				if name == "probe" {
					set(db, breaker.Heartbeat{})
					require.Error(t, a.Tick(t.Context()))
					time.Sleep(80 * time.Second)
				}
				require.True(t, breaker.Refused(ask(b, t.Context())))
				require.Equal(t, breaker.HalfOpen, st.control.Breaker.Name)
			})
		})
	}
}

// A request that began before an operator accepted the database is refused. It does not stop the flow again.
func TestARequestFromBeforeATakeoverStopsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, db := &store{}, database()
		a, b := newDatabaseBreaker(st, db, "a"), newDatabaseBreaker(st, db, "b")
		require.NoError(t, write(t, a, db))
		require.NoError(t, b.Permit(t.Context()))
		err := b.Do(t.Context(), 1, 0, func(_ context.Context, known breaker.Heartbeat) error {
			set(db, breaker.Heartbeat{})
			require.Error(t, a.Tick(t.Context()))
			_, err := a.Force(t.Context(), "ann", "x")
			require.NoError(t, err)
			return known.Refuse("test", row(db))
		})
		require.True(t, breaker.Refused(err))
		require.False(t, fault.Has(err, fault.OthersAnswered), "and it is no document's: nothing is divided")
		require.Equal(t, breaker.HalfOpen, st.control.Breaker.Name)
	})
}

// Many instances raise the row at once, each without the others' last numbers: the number grows, and no instance is
// refused.
func TestInstancesThatRaiseAtOnceRefuseNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, db := &store{}, database()
		var all []*breaker.Breaker
		for _, name := range []string{"a", "b", "c", "d"} {
			all = append(all, newDatabaseBreaker(st, db, name))
		}
		for range 100 {
			errs := make(chan error, len(all))
			for _, b := range all {
				go func() { errs <- write(t, b, db) }()
			}
			for range all {
				require.NoError(t, <-errs)
			}
			time.Sleep(time.Second)
		}
		require.Equal(t, row(db), st.control.Heartbeat, "the larger number wins")
		require.Equal(t, breaker.Name(""), st.control.Breaker.Name)
	})
}

// Heartbeats that end out of order, and one on another database, do not change the control document.
func TestTheLargerNumberWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, db := &store{}, database()
		b := newDatabaseBreaker(st, db, "a")
		require.NoError(t, b.Tick(t.Context()))
		for _, ahead := range []breaker.Heartbeat{
			{SysName: "web", DatabaseID: row(db).DatabaseID, Number: row(db).Number + 1000},
			{SysName: "web", DatabaseID: "other", Number: 7},
		} {
			st.control.Heartbeat = row(db)
			meanwhile := breaker.New(st,
				breaker.Options{
					SysName: "web",
					Heartbeat: func(ctx context.Context, known breaker.Heartbeat) (breaker.Heartbeat, error) {
						answer, err := db.Heartbeat(ctx, known)
						st.mu.Lock()
						defer st.mu.Unlock()
						st.version++
						st.control.Heartbeat = ahead
						return answer, err
					},
				})
			require.NoError(t, meanwhile.Tick(t.Context()))
			require.Equal(t, ahead, st.control.Heartbeat)
		}
	})
}

// A claim whose write failed is not in the control document. Its holder reads the document and has no probe.
func TestAClaimThatWasNotWrittenIsNotProbedWith(t *testing.T) {
	for _, other := range []string{"a", "b"} {
		t.Run("held by "+other, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st, sv := &store{}, &server{}
				b := open(st, sv, "a")
				is := breaker.State{
					Name: breaker.Open, Kind: fault.Infrastructure, Code: "refused",
					OpenUntil: time.Now(), HeldBy: other,
				}
				st.put(is)
				time.Sleep(20 * time.Second)
				st.fails = func() {
					if other != "a" { // another instance claims the probe
						is.OpenUntil = time.Now().Add(time.Minute)
						st.put(is)
					}
				}
				require.True(t, breaker.IsRefusal(b.Permit(t.Context())))
				require.Zero(t, sv.beats)
				require.Equal(t, is, st.control.Breaker, "the refusal is no failure of the database")
				if other != "a" {
					require.True(t, breaker.IsRefusal(b.Permit(t.Context())), "the probe is the other's")
					require.Zero(t, sv.beats)
					time.Sleep(time.Minute)
				}
				require.NoError(t, b.Permit(t.Context()), "it claims anew")
				require.Equal(t, 1, sv.beats)
			})
		})
	}
}

// Each instance probes by its own copy while the control document is away. It comes back during the probe of one, and
// another claims the next: the failure of the first must not take that claim over.
func TestAFailedProbeLeavesTheClaimOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &store{}
		probing, goOn := make(chan struct{}), make(chan struct{})
		st.put(breaker.State{Name: breaker.Open, Kind: fault.Infrastructure, OpenUntil: time.Now().Add(time.Minute)})
		a := breaker.New(st, breaker.Options{Instance: "a", Heartbeat: func(
			context.Context, breaker.Heartbeat,
		) (breaker.Heartbeat, error) {
			close(probing)
			<-goOn
			return breaker.Heartbeat{}, infra()
		}})
		a.View(t.Context())
		time.Sleep(time.Minute)
		st.isAway(true)
		failed := make(chan error)
		go func() { failed <- a.Tick(t.Context()) }()
		<-probing
		st.isAway(false)
		claim := make(chan breaker.State)
		b := breaker.New(st, breaker.Options{Instance: "b", Heartbeat: func(
			context.Context, breaker.Heartbeat,
		) (breaker.Heartbeat, error) {
			c, _, err := st.Load(t.Context())
			require.NoError(t, err)
			claim <- c.Breaker
			return breaker.Heartbeat{}, infra()
		}})
		go func() { _ = b.Tick(t.Context()) }()
		claimed := <-claim
		require.Equal(t, "b", claimed.HeldBy)
		close(goOn)
		require.True(t, fault.IsDependency(<-failed))
		c, _, err := st.Load(t.Context())
		require.NoError(t, err)
		require.Equal(t, []any{"b", claimed.OpenUntil}, []any{c.Breaker.HeldBy, c.Breaker.OpenUntil})
	})
}

// An instance that cannot read the control document does not raise the number, which could hide a database that went
// back. The flow continues, and an instance with a copy compares with that.
func TestWithoutTheControlDocumentNothingIsRaised(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, db := &store{}, database()
		a, fresh := newDatabaseBreaker(st, db, "a"), newDatabaseBreaker(st, db, "new")
		require.NoError(t, write(t, a, db))
		good := row(db)
		st.away = true
		time.Sleep(time.Minute)
		require.NoError(t, write(t, a, db), "it goes on by its own copy")
		require.NoError(t, a.Tick(t.Context()))
		require.Equal(t, good, row(db))

		back := good
		back.Number -= 3 * 60_000
		set(db, back)
		require.NoError(t, fresh.Tick(t.Context()), "one that just started knows nothing")
		require.NoError(t, write(t, fresh, db))
		require.Equal(t, back, row(db))
		require.Equal(t, breaker.CodeWentBack, fault.CodeOf(a.Tick(t.Context())))

		st.away = false
		time.Sleep(6 * time.Second)
		require.Equal(t, breaker.CodeWentBack, fault.CodeOf(write(t, fresh, db)))
		require.Equal(t, good, st.control.Heartbeat)
	})
}

// An instance that may only read the control document continues with its own copy, but compares with what it read.
func TestWhoCannotWriteTheControlDocumentComparesAllTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, db := &store{}, database()
		readOnly := &readOnlyStore{store: st}
		a := newDatabaseBreaker(st, db, "a")
		b := breaker.New(readOnly,
			breaker.Options{
				Instance: "b", Build: "build 1", SysName: "web", Heartbeat: db.Heartbeat, TakeOver: db.TakeOver,
			})
		require.NoError(t, write(t, a, db))
		require.NoError(t, b.Tick(t.Context()))
		readOnly.readOnly = true
		time.Sleep(10 * time.Second)
		require.NoError(t, write(t, b, db))
		back := row(db)
		back.Number += 1000
		time.Sleep(10 * time.Minute)
		require.NoError(t, write(t, a, db))
		set(db, back)
		time.Sleep(time.Minute)
		require.Equal(t, breaker.CodeWentBack, fault.CodeOf(b.Tick(t.Context())))
		require.Equal(t, back, row(db))
	})
}

// readOnlyStore is a store that cannot be written while readOnly is set.
type readOnlyStore struct {
	*store

	readOnly bool
}

func (m *readOnlyStore) Store(ctx context.Context, c breaker.Control, etag string) (string, error) {
	if m.readOnly {
		return "", fault.New(fault.Infrastructure, "test", "403", "forbidden")
	}
	return m.store.Store(ctx, c, etag)
}

// A shadow's heartbeat raises no row, and its result is not recorded.
func TestAnEmptyHeartbeatSaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &store{}
		known := breaker.Heartbeat{SysName: "web", DatabaseID: "x", Number: 7}
		st.version, st.control.Heartbeat = 1, known
		b := newDatabaseBreaker(st, previewSink{}, "a")
		require.NoError(t, b.Tick(t.Context()))
		require.Zero(t, st.puts)
		b.Applied(time.Now())
		b.Note(t.Context(), breaker.FeedLag{})
		require.Equal(t, known, st.control.Heartbeat)
	})
}

type previewSink struct{ commit.Sink }

func (previewSink) Heartbeat(context.Context, breaker.Heartbeat) (breaker.Heartbeat, error) {
	return breaker.Heartbeat{}, nil
}

func (previewSink) TakeOver(context.Context, breaker.Heartbeat) (breaker.Heartbeat, error) {
	return breaker.Heartbeat{}, nil
}
