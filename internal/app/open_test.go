package app

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/writer"
)

// A server that takes connections and says nothing must open the gate like one that refuses: otherwise every instance knocks
// again and again for as long as it hangs.
func TestAServerThatHangsAtTheStartOpensTheGate(t *testing.T) {
	gate := writer.NewGate(nil, writer.GateOptions{})
	hangs := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	tries := 0
	for ; !gate.Seen().State().Open(); tries++ {
		require.Less(t, tries, 20, "the gate does not open")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		require.Error(t, guarded(ctx, gate, time.Millisecond, hangs))
		cancel()
	}
	require.Equal(t, 5, tries)
	asked := false
	err := guarded(t.Context(), gate, time.Millisecond, func(context.Context) error { asked = true; return nil })
	require.True(t, writer.IsGate(err), "%v", err)
	require.False(t, asked)
	require.Less(t, openSQLTimeout, openTimeout, "or the end of the whole try comes first, which is nobody's failure")
}
