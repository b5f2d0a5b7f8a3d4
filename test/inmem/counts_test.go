package inmem_test

import (
	"testing"

	"sqlwriter/test/conformance"
	"sqlwriter/test/inmem"
)

func TestCountsStore(t *testing.T) {
	conformance.TestCountsStore(t, func(*testing.T) conformance.CountsHarness {
		c := &inmem.Counts{}
		return conformance.CountsHarness{Counts: c, Another: c}
	})
}
