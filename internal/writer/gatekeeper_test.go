package writer_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/inmem"
	"sqlwriter/internal/writer"
)

// fleet is the gates of an app's instances over one control document and one database, on one clock. The database is a
// door: it answers what the test says, and remembers when it was asked.
type fleet struct {
	clock   time.Time
	control *inmem.Control
	gates   []*writer.Gate
	log     bytes.Buffer
	// probe and apply are what the database answers; nil is a success.
	probe, apply error
	asked        []time.Time
}

func newFleet(n int) *fleet {
	f := &fleet{clock: start(), control: inmem.NewControl()}
	for i := range n {
		f.gates = append(f.gates, f.instance(fmt.Sprint("i", i), "v1", f.control))
	}
	return f
}

func (f *fleet) instance(name, version string, store writer.ControlStore) *writer.Gate {
	return writer.NewGate(store, writer.GateOptions{
		Instance: name, Version: version, Log: zerolog.New(&f.log), Now: func() time.Time { return f.clock },
	})
}

func (f *fleet) Probe(ctx context.Context) error {
	f.asked = append(f.asked, f.clock)
	if ctx.Err() != nil {
		return fault.Wrap(fault.Infrastructure, "sql: probe", "cancelled", "the caller gave up", ctx.Err())
	}
	return f.probe
}

// Heartbeat makes the fleet a sink.
func (f *fleet) Heartbeat(ctx context.Context, _ string) error { return f.Probe(ctx) }

func (f *fleet) Apply(ctx context.Context, items []writer.Item, _ writer.Mode) ([]writer.Outcome, error) {
	f.asked = append(f.asked, f.clock)
	if ctx.Err() != nil {
		return nil, fault.Wrap(fault.Infrastructure, "sql: apply", "cancelled", "the caller gave up", ctx.Err())
	}
	if f.apply != nil {
		return nil, f.apply
	}
	outcomes := make([]writer.Outcome, len(items))
	for i := range items {
		outcomes[i].Verdict = writer.Applied
	}
	return outcomes, nil
}

// down makes every use of the database fail.
func (f *fleet) down(err error) { f.probe, f.apply = err, err }

func (f *fleet) wait(d time.Duration) { f.clock = f.clock.Add(d) }

// use is one request of one document, as Commit makes it.
func (f *fleet) use(ctx context.Context, g *writer.Gate) error {
	a, err := g.Admit(ctx, f.Probe)
	if err != nil {
		return err
	}
	_, err = a.Apply(ctx, f, []writer.Item{{DocumentID: "d"}}, writer.Write)
	return err
}

// open opens the gate of all by five failures of the first instance.
func (f *fleet) open(t require.TestingT) {
	f.down(unreachable())
	for range 5 {
		require.Error(t, f.use(context.Background(), f.gates[0]))
	}
	require.True(t, f.state(0).Open())
}

// state is the gate that counts for an instance.
func (f *fleet) state(i int) writer.GateState { return f.gates[i].View(context.Background()).State() }

func unreachable() error {
	return fault.New(fault.Infrastructure, "sql: apply", "refused", "nobody listens")
}

func errorOf(kind fault.Kind) error { return fault.New(kind, "sql: apply", "x", "because") }

func TestFiveInfrastructureFailuresInARowOpenTheGate(t *testing.T) {
	f, ctx := newFleet(2), t.Context()
	f.down(unreachable())
	for n := range 5 {
		require.False(t, f.state(0).Open(), "after %d", n)
		require.Error(t, f.use(ctx, f.gates[0]))
	}
	require.Len(t, f.asked, 5)
	require.True(t, f.state(0).Open())
	err := f.use(ctx, f.gates[0])
	require.True(t, writer.IsGate(err))
	require.True(t, fault.IsDependency(err))
	require.Equal(t, "gate_open", fault.CodeOf(err))
	require.Equal(t, time.Minute, fault.As(err).RetryAfter)
	require.True(t, f.state(1).Open(), "for all instances")
	require.Len(t, f.asked, 5)
	require.Equal(t, 2, strings.Count(f.log.String(), `"message":"gate: open"`), "each instance says it once")
	require.Contains(t, f.log.String(), "nobody listens", "a transition is logged with its reason")
}

// What shows that the database answers ends the row: a success, a document's own error, a lost race.
func TestFailuresWithAnAnswerBetweenOpenNothing(t *testing.T) {
	for name, between := range map[string]error{
		"success": nil, "a refused document": fault.New(fault.Document, "sql: apply", "515", "NULL"), "a lost race": errorOf(fault.Contention),
		"a panic": errorOf(fault.Internal),
	} {
		f, ctx := newFleet(1), t.Context()
		for range 5 {
			f.down(unreachable())
			for range 4 {
				require.Error(t, f.use(ctx, f.gates[0]))
			}
			f.down(between)
			require.ErrorIs(t, f.use(ctx, f.gates[0]), between, name)
		}
		require.False(t, f.state(0).Open(), name)
		require.Equal(t, 0, f.state(0).Limit, name)
	}
}

// Throttling and a full database speak for themselves: the first answer opens.
func TestOtherDependencyErrorsOpenTheGateAtOnce(t *testing.T) {
	for kind, wait := range map[fault.Kind]time.Duration{fault.Throttled: 10 * time.Second, fault.Quota: 5 * time.Minute} {
		f := newFleet(2)
		f.down(errorOf(kind))
		require.Error(t, f.use(t.Context(), f.gates[0]))
		require.Equal(t, kind, f.state(1).Kind)
		require.Equal(t, f.clock.Add(wait), f.state(1).OpenUntil)
	}
	f := newFleet(1)
	f.down(&fault.Error{Kind: fault.Throttled, Code: "40501", RetryAfter: 42 * time.Second})
	require.Error(t, f.use(t.Context(), f.gates[0]))
	require.Equal(t, f.clock.Add(42*time.Second), f.state(0).OpenUntil)
}

// The caller that gives up (a shutdown, the end of an invocation) is nobody's failure.
func TestACancelledCallCountsNothing(t *testing.T) {
	f := newFleet(2)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	f.down(unreachable())
	for _, ctx := range []context.Context{cancelled, t.Context()} {
		for range 4 {
			require.Error(t, f.use(ctx, f.gates[0]))
		}
	}
	require.Len(t, f.asked, 8)
	require.False(t, f.state(0).Open(), "four in a row")
	f.down(nil)
	require.NoError(t, f.use(t.Context(), f.gates[0]))

	f.open(t)
	f.wait(time.Minute)
	require.Error(t, f.use(cancelled, f.gates[0]), "not even as a failed probe")
	f.down(nil)
	f.wait(time.Minute)
	require.NoError(t, f.use(t.Context(), f.gates[0]), "its owner need not wait longer")
	require.False(t, f.state(1).Open())
	require.NotContains(t, f.log.String(), "cannot be had", "the control document is not to blame either")
}

func TestExactlyOneOfThoseThatAskAtOnceProbes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "instances")
		f := newFleet(n)
		f.open(t)
		f.asked = nil
		for range rapid.IntRange(1, 5).Draw(t, "minutes") {
			// 10 s more than a minute: the owner of the failed probe may ask again
			f.wait(70 * time.Second)
			f.asked = nil
			for _, i := range rapid.Permutation(upTo(n)).Draw(t, "order") {
				require.Error(t, f.use(context.Background(), f.gates[i]))
			}
			require.Len(t, f.asked, 1)
		}
	})
}

func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// Promise G4: from the moment that all caches are fresh (5 s after opening) the app asks the database at most once a minute,
// whatever the instances do and whenever one dies in the middle; and once it answers, all go on.
func TestAnAppAsksADeadDatabaseAtMostOnceAMinute(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "instances")
		f := newFleet(n)
		f.down(unreachable())
		for range 5 {
			for _, g := range f.gates {
				_ = f.use(context.Background(), g)
			}
		}
		opened := f.state(0)
		require.True(t, opened.Open())
		f.wait(5 * time.Second)
		f.asked = nil
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			f.wait(time.Duration(rapid.IntRange(0, 20).Draw(t, "seconds")) * time.Second)
			g := f.gates[rapid.IntRange(0, n-1).Draw(t, "instance")]
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0: // it dies with the probe it claimed
				_, _ = g.Admit(context.Background(), func(ctx context.Context) error { _ = f.Probe(ctx); return nil })
			case 1:
				g.View(context.Background())
			case 2:
				require.Error(t, g.Guard(context.Background(), false, f.Probe))
			default:
				require.Error(t, f.use(context.Background(), g))
			}
		}
		for i := 1; i < len(f.asked); i++ {
			require.GreaterOrEqual(t, f.asked[i].Sub(f.asked[i-1]), time.Minute, "%v", f.asked)
		}
		f.down(nil)
		f.wait(70 * time.Second) // the owner of the last failed probe may have been the only one to ask
		require.NoError(t, f.use(context.Background(), f.gates[0]))
		f.wait(5 * time.Second)
		for i := range f.gates {
			require.NoError(t, f.use(context.Background(), f.gates[i]), "instance %d", i)
		}
	})
}

// A database that answers and cannot be written to is asked nothing that concerns a document.
func TestTheProbeBeginsWithWhatConcernsNoDocument(t *testing.T) {
	f := newFleet(1)
	f.open(t)
	f.probe, f.apply = fault.New(fault.Infrastructure, "sql: probe", "read_only", "failing over"), nil
	f.wait(time.Minute)
	f.asked = nil
	require.Equal(t, f.probe, f.use(t.Context(), f.gates[0]))
	require.Len(t, f.asked, 1)
	require.True(t, f.state(0).Open())
}

func TestADeadProberDoesNotBlockTheNextMinute(t *testing.T) {
	f := newFleet(2)
	f.open(t)
	f.down(nil)
	f.wait(time.Minute)
	_, err := f.gates[0].Admit(t.Context(), f.Probe)
	require.NoError(t, err) // and then it is gone
	for range 59 {
		f.wait(time.Second)
		require.True(t, writer.IsGate(f.use(t.Context(), f.gates[1])))
	}
	f.wait(time.Second)
	require.NoError(t, f.use(t.Context(), f.gates[1]))
}

func TestTheOwnerOfAFailedProbeWaitsTenSecondsLonger(t *testing.T) {
	for _, kind := range []fault.Kind{fault.Infrastructure, fault.Throttled, fault.Quota} {
		f := newFleet(2)
		f.open(t)
		f.wait(time.Minute)
		f.down(errorOf(kind))
		require.Error(t, f.use(t.Context(), f.gates[0]))
		due := f.state(1).OpenUntil
		f.clock, f.asked = due, nil
		require.True(t, writer.IsGate(f.use(t.Context(), f.gates[0])))
		f.wait(10*time.Second - time.Nanosecond)
		require.True(t, writer.IsGate(f.use(t.Context(), f.gates[0])), kind)
		require.Empty(t, f.asked)
		f.wait(time.Nanosecond)
		require.False(t, writer.IsGate(f.use(t.Context(), f.gates[0])), kind)
		require.Len(t, f.asked, 1, "when nobody else comes it asks again itself")

		f.clock = f.state(1).OpenUntil
		require.False(t, writer.IsGate(f.use(t.Context(), f.gates[1])), "others need not wait")
	}
}

func TestTheSuccessOfAnyInstanceClosesTheGateForAllWithinFiveSeconds(t *testing.T) {
	f := newFleet(3)
	f.open(t)
	f.down(nil)
	f.wait(time.Minute)
	require.True(t, f.state(1).Open())
	require.True(t, f.state(2).Open())
	require.NoError(t, f.use(t.Context(), f.gates[1]))
	require.Equal(t, 5, f.state(1).Limit)
	f.wait(5 * time.Second)
	for i := range f.gates {
		require.False(t, f.state(i).Open())
		require.NoError(t, f.use(t.Context(), f.gates[i]))
	}
}

// A probe that was forgotten for so long that others got an answer meanwhile says nothing about now.
func TestAProbeThatFailsLateOpensNothing(t *testing.T) {
	f := newFleet(2)
	f.open(t)
	f.wait(time.Minute)
	f.down(nil)
	a, err := f.gates[0].Admit(t.Context(), f.Probe)
	require.NoError(t, err)
	f.wait(time.Minute)
	require.NoError(t, f.use(t.Context(), f.gates[1]))
	f.wait(5 * time.Second)
	f.down(unreachable())
	_, err = a.Apply(t.Context(), f, []writer.Item{{}}, writer.Write)
	require.Error(t, err)
	f.wait(5 * time.Second)
	require.False(t, f.state(0).Open())
	require.False(t, f.state(1).Open())
}

// What answers is enough after an outage; a full database must have taken something.
func TestAFullDatabaseMustTakeADocumentBeforeTheGateCloses(t *testing.T) {
	f := newFleet(1)
	f.down(errorOf(fault.Quota))
	require.Error(t, f.use(t.Context(), f.gates[0]))
	f.probe, f.apply = nil, errorOf(fault.Document)
	f.wait(5 * time.Minute)
	require.Equal(t, f.apply, f.use(t.Context(), f.gates[0]))
	require.True(t, f.state(0).Open())
	f.apply = nil
	f.wait(time.Minute)
	require.NoError(t, f.use(t.Context(), f.gates[0]))
	require.False(t, f.state(0).Open())

	f.open(t)
	f.probe, f.apply = nil, errorOf(fault.Document)
	f.wait(time.Minute)
	require.Equal(t, f.apply, f.use(t.Context(), f.gates[0]))
	require.False(t, f.state(0).Open(), "an outage is over when anything is answered")
}

// What concerns no document goes through the gate, too: it is refused while that is open, and is the probe when one is due.
func TestWhatConcernsNoDocumentGoesThroughTheGate(t *testing.T) {
	f := newFleet(2)
	f.down(unreachable())
	for range 5 {
		require.Error(t, f.gates[0].Guard(t.Context(), false, f.Probe))
	}
	require.True(t, writer.IsGate(f.gates[1].Guard(t.Context(), false, f.Probe)))
	f.down(nil)
	f.wait(time.Minute)
	f.asked = nil
	require.NoError(t, f.gates[1].Guard(t.Context(), false, f.Probe))
	require.Len(t, f.asked, 1, "it is run once")
	require.False(t, f.state(1).Open())
}

// patience is a sink that tells how long it may take.
type patience struct{ apply, probe time.Duration }

func (p *patience) Probe(ctx context.Context) error {
	end, _ := ctx.Deadline()
	p.probe = time.Until(end)
	return nil
}

// Heartbeat makes it a sink.
func (p *patience) Heartbeat(ctx context.Context, _ string) error { return p.Probe(ctx) }

func (p *patience) Apply(ctx context.Context, _ []writer.Item, _ writer.Mode) ([]writer.Outcome, error) {
	end, _ := ctx.Deadline()
	p.apply = time.Until(end)
	return nil, nil
}

func TestARequestHasThirtySecondsAndAProbeTen(t *testing.T) {
	f, p := newFleet(1), &patience{}
	f.open(t)
	f.wait(time.Minute)
	a, err := f.gates[0].Admit(t.Context(), p.Probe)
	require.NoError(t, err)
	_, err = a.Apply(t.Context(), p, nil, writer.Write)
	require.NoError(t, err)
	require.InDelta(t, 10, p.probe.Seconds(), 5)
	require.InDelta(t, 30, p.apply.Seconds(), 5)
	require.NoError(t, a.Neutral(t.Context(), p.Probe))
	require.InDelta(t, 10, p.probe.Seconds(), 5)
}

// A request that was let through before the gate opened is not made after it.
func TestLeaveEndsWhenTheGateOpens(t *testing.T) {
	f := newFleet(1)
	a, err := f.gates[0].Admit(t.Context(), f.Probe)
	require.NoError(t, err)
	f.open(t)
	f.asked = nil
	_, err = a.Apply(t.Context(), f, []writer.Item{{}}, writer.Write)
	require.True(t, writer.IsGate(err))
	require.True(t, writer.IsGate(a.Neutral(t.Context(), f.Probe)))
	require.Empty(t, f.asked)
}

func TestAnOperatorPausesAndResumesAllInstances(t *testing.T) {
	f, ctx := newFleet(2), t.Context()
	operator := f.instance("laptop", "", f.control)
	require.NoError(t, operator.Pause(ctx, "ada", "release 12"))
	f.wait(5 * time.Second)
	for range 100 {
		f.wait(time.Hour)
		for _, g := range f.gates {
			err := f.use(ctx, g)
			require.True(t, writer.IsGate(err))
			require.Equal(t, "paused", fault.CodeOf(err))
			require.Equal(t, time.Minute, fault.As(err).RetryAfter)
			require.Contains(t, err.Error(), "paused by ada: release 12")
		}
	}
	require.Empty(t, f.asked, "a pause has no probe")
	require.NoError(t, operator.Resume(ctx, "ada"))
	f.wait(5 * time.Second)
	for _, g := range f.gates {
		require.NoError(t, f.use(ctx, g))
	}
	require.Contains(t, f.log.String(), `"reason":"release 12"`)

	// an outage and a schedule of hours, too
	for _, kind := range []fault.Kind{fault.Infrastructure, fault.Quota, fault.Systemic} {
		f.open(t)
		f.down(errorOf(kind))
		f.wait(time.Minute)
		require.Error(t, f.use(ctx, f.gates[1]))
		require.Equal(t, kind, f.state(1).Kind)
		f.down(nil)
		require.NoError(t, f.gates[0].Resume(ctx, "ada"))
		require.NoError(t, f.use(ctx, f.gates[0]))
		f.wait(5 * time.Second)
		require.NoError(t, f.use(ctx, f.gates[1]))
	}
}

// An operator's word counts for all instances or not at all.
func TestAnOperatorIsToldWhenTheOthersWouldNotKnow(t *testing.T) {
	f := newFleet(1)
	store := &moody{store: f.control}
	g := f.instance("a", "v1", store)
	store.load = down("cosmos")
	require.Equal(t, "control", fault.CodeOf(g.Pause(t.Context(), "ada", "x")))
	store.load, store.save = nil, down("cosmos")
	require.ErrorIs(t, g.Pause(t.Context(), "ada", "x"), store.save)
	require.False(t, f.state(0).Open())

	store.save = nil
	store.before = func() { // somebody else is always faster
		c, etag, err := f.control.Load(context.Background())
		require.NoError(t, err)
		_, err = f.control.Store(context.Background(), c, etag)
		require.NoError(t, err)
	}
	require.Equal(t, fault.Contention, fault.KindOf(g.Pause(t.Context(), "ada", "x")))
	n := 0
	always := store.before
	store.before = func() {
		if n++; n < 3 {
			always()
		}
	}
	require.NoError(t, g.Pause(t.Context(), "ada", "x"), "it is tried again")
}

// moody stands before a control store and can fail it.
type moody struct {
	store      writer.ControlStore
	load, save error
	before     func()
	saves      int
}

func (m *moody) Load(ctx context.Context) (writer.Control, string, error) {
	if m.load != nil {
		return writer.Control{}, "", m.load
	}
	return m.store.Load(ctx)
}

func (m *moody) Store(ctx context.Context, c writer.Control, etag string) (string, error) {
	m.saves++
	if m.save != nil {
		return "", m.save
	}
	if m.before != nil {
		m.before()
	}
	return m.store.Store(ctx, c, etag)
}

// Without the control document each instance keeps its own gate, says so once, and shares again when it can.
func TestAnInstanceWithoutTheControlDocumentKeepsItsOwnGate(t *testing.T) {
	unreadable := fault.New(fault.Infrastructure, "cosmos: load control", "unreadable", "no JSON")
	for name, broken := range map[string]func(*moody){
		"neither read nor written": func(m *moody) { m.load, m.save = down("cosmos"), down("cosmos") },
		"written but not read":     func(m *moody) { m.load = down("cosmos") },
		"read but not written":     func(m *moody) { m.save = down("cosmos") },
		"somebody broke it": func(m *moody) {
			m.load, m.save = unreadable, &fault.Error{Kind: fault.Contention, Condition: fault.Changed, Code: "412"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, ctx := newFleet(0), t.Context()
			store := &moody{store: f.control}
			broken(store)
			f.gates = []*writer.Gate{f.instance("a", "v1", store)}
			f.down(unreachable())
			for range 60 { // ten minutes at the host's pace
				require.Error(t, f.use(ctx, f.gates[0]))
				f.wait(10 * time.Second)
			}
			require.GreaterOrEqual(t, len(f.asked), 5+6)
			for i := 6; i < len(f.asked); i++ {
				require.GreaterOrEqual(t, f.asked[i].Sub(f.asked[i-1]), time.Minute, "%v", f.asked)
			}
			require.Equal(t, 1, strings.Count(f.log.String(), "cannot be had"), f.log.String())
			require.NotContains(t, f.log.String(), "can be had again")
			f.down(nil)
			f.wait(70 * time.Second)
			require.NoError(t, f.use(ctx, f.gates[0]), "it comes back without the control document")
			require.True(t, name == "written but not read" || f.gates[0].Seen().Lost)

			store.load, store.save = nil, nil
			f.wait(5 * time.Second)
			require.NoError(t, f.use(ctx, f.gates[0]))
			require.False(t, f.gates[0].Seen().Lost)
			other := f.instance("b", "v1", f.control)
			require.NoError(t, other.Pause(ctx, "ada", "x"))
			f.wait(5 * time.Second)
			require.Equal(t, "paused", fault.CodeOf(f.use(ctx, f.gates[0])), "shared again")
		})
	}
}
