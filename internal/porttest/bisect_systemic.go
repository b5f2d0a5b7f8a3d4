package porttest

import (
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/writer"
)

// systemicCases: a schema that every document breaks on.
func systemicCases() []sinkCase {
	return []sinkCase{
		{"bisect: a column made NOT NULL in mid-drain stops everything and costs no document a retry", []string{"NotNull"}, notNullInMidDrain},
		{"bisect: 100 bad documents among 400 good ones stop nothing", []string{"Refuse"}, manyBadOnes},
	}
}

func notNullInMidDrain(s *sinkTest) {
	const total, batch, before = 500, 100, 200
	b := newBisect(s, total)
	list := papers(total)
	b.put(list...)
	require.NoError(b, b.offer(0, list[:batch]...))
	require.NoError(b, b.offer(0, list[batch:before]...))
	restore := s.h.NotNull(s)
	was := b.texts(list[before:])
	b.clock = b.clock.Add(time.Minute)

	err := b.offer(0, list[before:before+batch]...)
	require.Equal(b, fault.Systemic, fault.KindOf(err), "%v", err)
	state := b.gate.Seen().State()
	require.Equal(b, []any{true, fault.Systemic, fault.CodeOf(err)}, []any{state.Open(), state.Kind, state.Code})
	s.Logf("the gate: %s", state.Describe(b.clock))
	b.requests.taken()
	for wait := 10 * time.Second; wait < 5*time.Minute; wait += 10 * time.Second {
		b.clock = b.clock.Add(10 * time.Second)
		require.True(b, writer.IsGate(b.offer(1, list[before:before+batch]...)))
	}
	require.Equal(b, 0, b.requests.taken(), "nobody knocks meanwhile")

	b.clock = b.clock.Add(10 * time.Second) // five minutes are over: a probe of documents that were not tried
	require.Equal(b, fault.Systemic, fault.KindOf(b.offer(1, list[before:before+batch]...)))
	require.LessOrEqual(b, b.requests.taken(), 1+2*5)
	require.Equal(b, was, b.texts(list[before:]), "no document has been told anything")

	restore()
	b.clock = b.clock.Add(15*time.Minute + 10*time.Second) // the owner of a failed probe waits 10 s longer
	for from := before; from < total; from += batch {
		require.NoError(b, b.offer(1, list[from:from+batch]...))
	}
	require.False(b, b.gate.Seen().State().Open())
	for _, p := range list {
		d := b.read(p)
		require.Equal(b, []any{invoice.Committed, 0}, []any{d.State.Status, d.State.RetryCount}, "%s", p.id())
	}
}

func manyBadOnes(s *sinkTest) {
	const total, batch = 500, 100
	b := newBisect(s, total)
	s.h.Refuse(s, refusedName)
	list := papers(total)
	bad := map[int]bool{}
	for i := range total {
		if i%5 == 2 && i < 250 || i >= 300 && i < 350 { // scattered, and one block of 50
			list[i].name, bad[i] = refusedName, true
		}
	}
	require.Len(b, bad, 100)
	b.put(list...)
	for from := 0; from < total; from += batch {
		require.NoError(b, b.offer(0, list[from:from+batch]...))
		require.False(b, b.gate.Seen().State().Open())
	}
	for i, p := range list {
		d := b.read(p)
		if bad[i] {
			require.Equal(b, b.clock.Unix()+132, b.blamed(p).RetryAfter, "2 minutes plus half of 20 %%")
		} else {
			require.Equal(b, invoice.Committed, d.State.Status, "%s", p.id())
		}
	}
}
