package commit

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// refusingSink refuses single documents, as a sink does whose column cannot store a character.
type refusingSink struct {
	Sink
	refused map[string]bool
}

func (s refusingSink) Apply(
	ctx context.Context, items []Item, mode Mode, known breaker.Heartbeat,
) ([]DocumentOutcome, error) {
	outcomes, err := s.Sink.Apply(ctx, items, mode, known)
	for i, o := range outcomes {
		if s.refused[o.DocumentID] {
			outcomes[i] = DocumentOutcome{
				DocumentID: o.DocumentID, Refused: fault.New(fault.Document, "test", "validation.code_page", "refused"),
			}
		}
	}
	return outcomes, err
}

// A document that the sink refuses fails alone, and its neighbours need no further request.
func TestARefusedDocumentNeedsNoBisect(t *testing.T) {
	items := numbered(100)
	s := &scriptedSink{}
	p := scripted(s)
	p.sink = refusingSink{s, map[string]bool{items[7].DocumentID: true, items[93].DocumentID: true}}
	results, done, err := p.apply(t.Context(), items)
	require.NoError(t, err)
	require.Len(t, s.requests, 1)
	for i := range items {
		require.True(t, done[i])
		if i == 7 || i == 93 {
			require.Equal(t, fault.Document, fault.KindOf(results[i].err))
			require.Equal(t, "validation.code_page", fault.CodeOf(results[i].err))
			continue
		}
		require.NoError(t, results[i].err)
		require.Equal(t, invoice.OutcomeApplied, results[i].outcome.Verdict)
	}
}
