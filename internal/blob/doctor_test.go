package blob

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
)

// A doctor leaves no file. What one that was killed left, at whatever step, is deleted once it is an hour old; evidence
// stays. Another doctor at each of its steps disturbs neither of the two.
func TestADoctorLeavesNoFile(t *testing.T) {
	t.Parallel()
	server, name := azuriteOf(t), newContainer()
	view, direct := openVendorView(t, server, name), openOn(t, server.ConnectionString(), name, patient())
	require.NoError(t, direct.Keep(t.Context(), "failed/1", []byte("{}")))
	anHourAgo, inAnHour := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	azurite, err := url.Parse("http://" + server.Address)
	require.NoError(t, err)
	forward := httputil.NewSingleHostReverseProxy(azurite)

	// killed is a doctor that something happens to, before or after one of its requests is answered.
	killed := func(step int32, old time.Time, before, after func(cancel func())) (methods []string, err error) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var requests atomic.Int32
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			methods = append(methods, r.Method)
			here := requests.Add(1) == step
			if here {
				before(cancel)
			}
			if ctx.Err() == nil {
				forward.ServeHTTP(w, r.WithContext(context.WithoutCancel(r.Context())))
			}
			if here {
				after(cancel)
			}
		}))
		defer front.Close()
		through := strings.ReplaceAll(server.ConnectionString(), server.Address, front.Listener.Addr().String())
		err = openOn(t, through, name, patient()).TryWrites(ctx, old)
		return methods, err
	}
	nothing, kill := func(func()) {}, func(cancel func()) { cancel() }
	methods, err := killed(0, anHourAgo, nothing, nothing)
	require.NoError(t, err)
	require.Equal(t, []string{"PUT", "GET", "DELETE", "GET"}, methods)
	for step := range int32(4) {
		var other error
		_, err := killed(step+1, anHourAgo, func(func()) { other = direct.TryWrites(t.Context(), anHourAgo) }, nothing)
		require.NoError(t, err, "the first doctor")
		require.NoError(t, other, "the other one")
		require.Len(t, view.names(t), 1)
		for name, at := range map[string][2]func(func()){"before": {kill, nothing}, "after": {nothing, kill}} {
			_, err = killed(step+1, anHourAgo, at[0], at[1])
			require.True(t, err != nil || step == 3, "the last answer may come before the kill")
			left := len(view.names(t))
			stands := (step > 0 || name == "after") && (step < 2 || step == 2 && name == "before")
			require.Equal(t, stands, left == 2, "killed %s step %d", name, step+1)
			require.NoError(t, direct.TryWrites(t.Context(), anHourAgo))
			require.Len(t, view.names(t), left, "another doctor may still read it")
			require.NoError(t, direct.TryWrites(t.Context(), inAnHour))
			require.Equal(t, []string{"web/failed/1"}, view.names(t))
		}
	}
	require.NoError(t, direct.Keep(t.Context(), "doctor/LEFT", []byte("{}")))
	var other error
	_, err = killed(5, inAnHour, func(func()) { other = direct.TryWrites(t.Context(), inAnHour) }, nothing)
	require.NoError(t, errors.Join(err, other), "two delete the same")
	proxy := server.Proxy(t)
	proxy.Refuse()
	short := openOn(t, proxy.ConnectionString(), name, Timeouts{Keep: time.Second, List: time.Second})
	require.Equal(t, fault.Infrastructure, fault.KindOf(short.TryWrites(t.Context(), anHourAgo)))
}
