package run_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/run"
)

func TestKnownDocumentsOfARun(t *testing.T) {
	handedOff := time.Unix(1, 0)
	for name, c := range map[string]struct {
		run   run.Run
		known int
		more  bool
	}{
		"what the preview found": {
			run.Run{Status: run.RunRunning, Matched: 511, Documents: 20}, 511, false,
		},
		"at least that": {
			run.Run{Status: run.RunRunning, Matched: 10_000, AtLeast: true, Documents: 20}, 10_000, true,
		},
		"more than that": {
			run.Run{Status: run.RunRunning, Matched: 511, Documents: 600}, 600, true,
		},
		"not counted": {run.Run{Status: run.RunRunning, Documents: 20}, 20, true},
		"all is handed off": {
			run.Run{
				Status: run.RunRunning, Matched: 10_000, AtLeast: true, Documents: 20, HandedOffAt: handedOff,
			}, 20, false,
		},
		"it ended before all was handed off": {
			run.Run{Status: run.RunCancelled, Matched: 511, Documents: 20}, 511, false,
		},
		"it ended, and was not counted": {run.Run{Status: run.RunFailed, Documents: 20}, 20, false},
	} {
		known, more := c.run.Known()
		require.Equal(t, []any{c.known, c.more}, []any{known, more}, name)
	}
}
