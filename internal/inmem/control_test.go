package inmem_test

import (
	"testing"

	"sqlwriter/internal/inmem"
	"sqlwriter/internal/porttest"
)

func TestControlStore(t *testing.T) {
	porttest.TestControlStore(t, func(*testing.T) porttest.ControlHarness {
		control := inmem.NewControl()
		return porttest.ControlHarness{Control: control, Another: control}
	})
}
