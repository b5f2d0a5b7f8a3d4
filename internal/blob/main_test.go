package blob

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"sqlwriter/test/emulators/azurite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(withAzurite{m}) }

// withAzurite stops the shared Azurite before the check for leaks.
type withAzurite struct{ m *testing.M }

func (w withAzurite) Run() int {
	defer shared.stop()
	return w.m.Run()
}

// shared is one Azurite for the package, started by the first test that needs it, because Node takes seconds to load
// it. Each test has a container of its own.
var shared lazyAzurite

type lazyAzurite struct {
	once   sync.Once
	server *azurite.Server
	err    error
}

func azuriteOf(t *testing.T) *azurite.Server {
	t.Helper()
	shared.once.Do(func() { shared.server, shared.err = azurite.Run() })
	require.NoError(t, shared.err)
	return shared.server
}

func (l *lazyAzurite) stop() {
	if l.server != nil {
		l.server.Stop()
	}
}
