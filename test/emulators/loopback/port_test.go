package loopback

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A stranger's server answered in the place of one that was down: two processes had been given one port.
func TestTwoProcessesAreNeverGivenOnePort(t *testing.T) {
	var a, b ports
	t.Cleanup(func() {
		for _, l := range append(a.owned, b.owned...) {
			require.NoError(t, l.Close())
		}
	})
	given := map[int]bool{}
	for range 3 * block {
		for _, p := range []*ports{&a, &b} {
			port := p.take()
			require.NotZero(t, port)
			require.Falsef(t, given[port], "port %d was given twice", port)
			given[port] = true
		}
	}
}
