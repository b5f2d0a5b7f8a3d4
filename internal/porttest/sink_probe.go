package porttest

import (
	"context"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/writer"
)

// probeCases: a probe tells whether the database can be written to, and concerns no document.
func probeCases() []sinkCase {
	return []sinkCase{
		{"a probe of a healthy database answers nil and changes nothing", nil, probeHealthy},
		{"a probe between two requests leaves the sink as it was", nil, probeBetween},
		{"a probe of a read-only database is infrastructure, until it can be written to again", []string{"ReadOnly"}, probeReadOnly},
		{"a probe waits for nobody's line, or is contention", []string{"Lock"}, probeLocked},
		{"a probe whose context has ended is infrastructure", nil, probeCancelled},
	}
}

func probeHealthy(s *sinkTest) {
	items := s.mixed()
	s.apply(writer.Write, items...)
	before := s.state(span(1, 13)...)
	for range 3 {
		require.NoError(s, s.h.Sink.Probe(s.Context()))
	}
	require.Equal(s, before, s.state(span(1, 13)...))
}

func probeBetween(s *sinkTest) {
	s.h.AddLines(s, 1, 2)
	a, b := doc("a", 10, 5, "x", 1), doc("b", 11, 5, "y", 2)
	require.NoError(s, s.h.Sink.Probe(s.Context()))
	s.gives(a, "applied(applied)")
	require.NoError(s, s.h.Sink.Probe(s.Context()))
	s.givesIn(writer.Write, []string{"unchanged(unchanged)", "applied(applied)"}, a, b)
	s.holds(a)
	s.holds(b)
}

func probeReadOnly(s *sinkTest) {
	s.h.AddLines(s, 1)
	restore := s.h.ReadOnly(s)
	err := s.h.Sink.Probe(s.Context())
	require.Equal(s, []string{string(fault.Infrastructure), "read_only"}, []string{string(fault.KindOf(err)), fault.CodeOf(err)}, "%v", err)
	s.fails(fault.Infrastructure, writer.Write, doc("a", 10, 5, "x", 1))
	restore()
	require.NoError(s, s.h.Sink.Probe(s.Context()))
	s.gives(doc("a", 10, 5, "x", 1), "applied(applied)")
}

func probeLocked(s *sinkTest) {
	s.h.AddLines(s, 1, 2)
	unlock := s.lock(1)
	err := s.h.Sink.Probe(s.Context())
	if s.h.RowLocks {
		require.NoError(s, err, "a line is not the database")
	} else {
		require.Equal(s, fault.Contention, fault.KindOf(err), "%v", err)
	}
	unlock()
	require.NoError(s, s.h.Sink.Probe(s.Context()))
}

func probeCancelled(s *sinkTest) {
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	err := s.h.Sink.Probe(ctx)
	require.Equal(s, fault.Infrastructure, fault.KindOf(err), "%v", err)
	require.ErrorIs(s, err, context.Canceled)
	require.NoError(s, s.h.Sink.Probe(s.Context()))
}
