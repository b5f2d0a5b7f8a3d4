package inmem_test

import (
	"testing"

	"sqlwriter/test/conformance"
	"sqlwriter/test/inmem"
)

func TestControlStore(t *testing.T) {
	conformance.TestControlStore(t, func(*testing.T) conformance.ControlHarness {
		control := inmem.NewControl()
		return conformance.ControlHarness{Control: control, Another: control}
	})
}
