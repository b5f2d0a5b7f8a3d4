package scenario

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain lets garbage lie for longer: worlds are small, and a fifth of the time went into collecting it.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}
