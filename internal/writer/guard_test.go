package writer_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/writer"
)

// openFor is a fleet behind a gate that is open for a kind, due or for another minute; "" is a closed gate, "paused" an operator's.
func openFor(t require.TestingT, instances int, kind fault.Kind, due bool) *fleet {
	f := newFleet(instances)
	state := writer.GateState{
		Limit: 1, Kind: kind, Code: "x", Reason: "because", Since: f.clock.Add(-time.Hour), RaisedAt: f.clock.Add(-time.Hour), HeldBy: "another", Step: 1,
		OpenUntil: f.clock.Add(time.Minute),
	}
	if due {
		state.OpenUntil = f.clock
	}
	switch kind { //nolint:exhaustive // the others are as they are
	case fault.Systemic:
		state.OpenedBy = "v1"
	case "paused":
		state = writer.GateState{Paused: true, Code: "paused", Reason: "maintenance", Since: f.clock.Add(-time.Hour), HeldBy: "ada"}
	case "":
		state = writer.GateState{}
	}
	_, err := f.control.Store(context.Background(), writer.Control{Gate: state}, "")
	require.NoError(t, err)
	return f
}

// guards are the ways to use SQL for what concerns no document.
func guards() map[string]func(g *writer.Gate, use func(context.Context) error) error {
	ctx := context.Background()
	return map[string]func(g *writer.Gate, use func(context.Context) error) error{
		"read":  func(g *writer.Gate, use func(context.Context) error) error { return g.Guard(ctx, false, use) },
		"write": func(g *writer.Gate, use func(context.Context) error) error { return g.Guard(ctx, true, use) },
		"end":   func(g *writer.Gate, use func(context.Context) error) error { return g.GuardEnd(ctx, use) },
	}
}

// Every kind of gate, due or not, and every use: whether it passes, whether it claims the probe, whether its success closes the gate.
func TestWhoPassesTheGateWhoProbesAndWhoClosesIt(t *testing.T) {
	const (
		refused = "refused"
		beside  = "passes beside it"
		closes  = "probes and closes"
		passes  = "passes"
	)
	expected := map[fault.Kind]map[bool]map[string]string{
		"":                   {false: {"read": passes, "write": passes, "end": passes}, true: {"read": passes, "write": passes, "end": passes}},
		fault.Infrastructure: {false: {"read": refused, "write": refused, "end": refused}, true: {"read": closes, "write": closes, "end": closes}},
		fault.Throttled:      {false: {"read": refused, "write": refused, "end": refused}, true: {"read": closes, "write": closes, "end": closes}},
		fault.Quota:          {false: {"read": refused, "write": refused, "end": refused}, true: {"read": beside, "write": closes, "end": closes}},
		fault.Systemic:       {false: {"read": refused, "write": refused, "end": beside}, true: {"read": beside, "write": beside, "end": beside}},
		"paused":             {false: {"read": refused, "write": refused, "end": refused}, true: {"read": refused, "write": refused, "end": refused}},
	}
	for kind, byDue := range expected {
		for due, byUse := range byDue {
			for use, want := range byUse {
				t.Run(fmt.Sprintf("%s due %t %s", kind, due, use), func(t *testing.T) {
					f := openFor(t, 2, kind, due)
					before := f.state(0)
					var during writer.GateState
					err := guards()[use](f.gates[0], func(ctx context.Context) error {
						during = f.state(0)
						return f.Probe(ctx)
					})
					if want == refused {
						require.True(t, writer.IsGate(err), "%v", err)
						require.Empty(t, f.asked)
						require.Equal(t, before, f.state(0))
						return
					}
					require.NoError(t, err)
					require.Len(t, f.asked, 1)
					switch want {
					case passes:
						require.Equal(t, writer.GateState{}, f.state(0))
					case closes:
						require.Equal(t, "i0", during.HeldBy)
						require.Equal(t, f.clock.Add(time.Minute), during.OpenUntil)
						require.False(t, f.state(0).Open())
					case beside:
						require.Equal(t, before, during)
						require.Equal(t, before, f.state(0))
						if due { // the probe is there for whoever has the answer
							require.NoError(t, f.use(t.Context(), f.gates[1]))
							require.False(t, f.state(1).Open())
						}
					}
				})
			}
		}
	}
}

// Whatever uses SQL for what concerns no document, in whatever order and at whatever times: a document is never kept from a probe
// by it, and at every moment the gate is as it was, or closed by an answer.
func TestNoUseThatCannotAnswerKeepsADocumentFromTheProbe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]fault.Kind{fault.Infrastructure, fault.Throttled, fault.Quota, fault.Systemic}).Draw(t, "kind")
		f := openFor(t, 3, kind, false)
		opened := f.state(0)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			f.wait(time.Duration(rapid.IntRange(0, 30).Draw(t, "seconds")) * time.Second)
			use := rapid.SampledFrom([]string{"read", "write", "end"}).Draw(t, "use")
			g := f.gates[rapid.IntRange(0, 2).Draw(t, "instance")]
			err := guards()[use](g, f.Probe)
			state := g.View(context.Background()).State()
			if !state.Open() {
				require.NoError(t, err)
				return
			}
			require.Equal(t, opened, state)
		}
		f.clock = opened.OpenUntil.Add(5 * time.Second)
		require.NoError(t, f.use(context.Background(), f.gates[0]))
		require.False(t, f.state(0).Open())
	})
}

// What fails beside a gate whose probe is due fails as at a closed one: it is not lost, and nobody knocks at a dead server.
func TestFailuresBesideADueGateCount(t *testing.T) {
	f := openFor(t, 2, fault.Systemic, true)
	f.down(unreachable())
	for range 4 {
		require.Error(t, f.gates[0].Guard(t.Context(), true, f.Probe))
		require.Equal(t, fault.Systemic, f.state(0).Kind)
	}
	require.Error(t, f.gates[0].Guard(t.Context(), true, f.Probe))
	for i := range f.gates {
		require.Equal(t, fault.Infrastructure, f.state(i).Kind)
		require.Equal(t, f.clock.Add(time.Minute), f.state(i).OpenUntil)
		require.True(t, writer.IsGate(f.gates[i].Guard(t.Context(), true, f.Probe)))
	}
	require.Len(t, f.asked, 5)

	for kind, wait := range map[fault.Kind]time.Duration{fault.Throttled: 10 * time.Second, fault.Quota: 5 * time.Minute} {
		f := openFor(t, 1, fault.Systemic, true)
		f.down(errorOf(kind))
		require.Error(t, f.gates[0].Guard(t.Context(), true, f.Probe))
		require.Equal(t, kind, f.state(0).Kind)
		require.Equal(t, f.clock.Add(wait), f.state(0).OpenUntil)
	}
}

// An answer between ends the row, as at a closed gate.
func TestAnAnswerBesideADueGateEndsTheRow(t *testing.T) {
	f := openFor(t, 1, fault.Systemic, true)
	for range 3 {
		f.down(unreachable())
		for range 4 {
			require.Error(t, f.gates[0].Guard(t.Context(), false, f.Probe))
		}
		f.down(nil)
		require.NoError(t, f.gates[0].Guard(t.Context(), false, f.Probe))
	}
	require.Equal(t, fault.Systemic, f.state(0).Kind)
	require.Equal(t, f.clock, f.state(0).OpenUntil)
}

// What fails beside a gate says nothing of a probe that somebody else claimed meanwhile, nor of a gate that is not due.
func TestFailuresBesideAGateChangeNobodysProbe(t *testing.T) {
	f := openFor(t, 2, fault.Systemic, true)
	f.down(errorOf(fault.Throttled))
	require.Error(t, f.gates[0].Guard(t.Context(), true, func(ctx context.Context) error {
		_, err := f.gates[1].Admit(ctx, func(context.Context) error { return nil })
		require.NoError(t, err)
		return f.Probe(ctx)
	}))
	f.wait(5 * time.Second)
	require.Equal(t, fault.Systemic, f.state(0).Kind)
	require.Equal(t, "i1", f.state(0).HeldBy)

	f = openFor(t, 1, fault.Systemic, false)
	before := f.state(0)
	f.down(errorOf(fault.Throttled))
	require.Error(t, f.gates[0].GuardEnd(t.Context(), f.Probe))
	require.Equal(t, before, f.state(0))
}

// A failure beside a gate that a document closed meanwhile is one at a closed gate: the fifth in a row of its instance opens it.
func TestTheFifthFailureBesideAGateThatWasClosedMeanwhile(t *testing.T) {
	for closer, opens := range []bool{false, true} { // the answer that the instance itself had ends its row
		f := openFor(t, 2, fault.Systemic, true)
		f.down(unreachable())
		for range 4 {
			require.Error(t, f.gates[0].Guard(t.Context(), true, f.Probe))
		}
		require.Error(t, f.gates[0].Guard(t.Context(), true, func(ctx context.Context) error {
			f.down(nil)
			require.NoError(t, f.use(ctx, f.gates[closer]))
			f.down(unreachable())
			return f.Probe(ctx)
		}))
		f.wait(5 * time.Second)
		require.Equal(t, opens, f.state(0).Open())
		if opens {
			require.Equal(t, fault.Infrastructure, f.state(0).Kind)
		}
	}
}
