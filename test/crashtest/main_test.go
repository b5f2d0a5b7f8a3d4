package crashtest

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain lets garbage lie for longer: a world lives for a millisecond, and there are tens of thousands.
func TestMain(m *testing.M) {
	debug.SetGCPercent(800)
	os.Exit(m.Run())
}
