package blob

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
)

// A doctor leaves no file, and deletes what was left before a time. Evidence stays. Another doctor may be faster.
func TestADoctorLeavesNoFile(t *testing.T) {
	t.Parallel()
	server, name := azuriteOf(t), newContainer()
	view, direct := openVendorView(t, server, name), openOn(t, server.ConnectionString(), name, patient())
	anHourAgo, inAnHour := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	for _, file := range []string{"failed/1", "doctor/LEFT"} {
		require.NoError(t, direct.Keep(t.Context(), file, []byte("{}")))
	}
	require.NoError(t, direct.TryWrites(t.Context(), anHourAgo))
	require.Equal(t, []string{"web/doctor/LEFT", "web/failed/1"}, view.names(t))
	require.NoError(t, direct.TryWrites(t.Context(), inAnHour))
	require.Equal(t, []string{"web/failed/1"}, view.names(t))
	require.NoError(t, direct.remove(t.Context(), "doctor/LEFT"), "two delete the same")
	proxy := server.Proxy(t)
	proxy.Refuse()
	short := openOn(t, proxy.ConnectionString(), name, Timeouts{Keep: time.Second, List: time.Second})
	require.Equal(t, fault.Infrastructure, fault.KindOf(short.TryWrites(t.Context(), anHourAgo)))
}
