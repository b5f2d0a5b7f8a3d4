package blob

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
)

// A Trial leaves nothing, and what a killed one left is swept once it is old. Evidence stays.
func TestATrialLeavesNothing(t *testing.T) {
	t.Parallel()
	server, name := azuriteOf(t), newContainer()
	proxy, view := server.Proxy(t), openVendorView(t, server, name)
	s := openOn(t, proxy.ConnectionString(), name, patient())
	require.NoError(t, s.Try(t.Context(), "a"))
	require.Empty(t, view.names(t))
	seen := len(proxy.Seen())
	require.NoError(t, s.Try(t.Context(), "b"))
	require.Equal(t, []string{"PUT", "GET", "DELETE"}, proxy.Seen()[seen:])

	require.NoError(t, s.Keep(t.Context(), "doctor/left", []byte("{}")))
	require.NoError(t, s.Keep(t.Context(), "failed/1", []byte("{}")))
	require.NoError(t, s.Sweep(t.Context(), time.Now().Add(-time.Hour)))
	require.Len(t, view.names(t), 2, "another run may still read it")
	require.NoError(t, s.Sweep(t.Context(), time.Now().Add(time.Hour)))
	require.Equal(t, []string{"web/failed/1"}, view.names(t))

	proxy.Refuse()
	short := openOn(t, proxy.ConnectionString(), name, Timeouts{Keep: time.Second, List: time.Second})
	require.Equal(t, fault.Infrastructure, fault.KindOf(short.Try(t.Context(), "c")))
	require.Equal(t, fault.Infrastructure, fault.KindOf(short.Sweep(t.Context(), time.Now())))
}
