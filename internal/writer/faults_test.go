package writer

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
)

// What the table of kinds tells people is what the gate and the schedule do.
func TestTheTableOfKindsSaysWhatIsDone(t *testing.T) {
	when := map[fault.Kind]string{}
	for _, r := range fault.Rules() {
		when[r.Kind] = r.When
	}
	says := func(k fault.Kind, format string, args ...any) {
		t.Helper()
		require.Contains(t, when[k], fmt.Sprintf(format, args...))
	}
	says(fault.Infrastructure, "%d in a row open the gate: %.0f s, then one probe", breakerFailures, probeEvery.Seconds())
	says(fault.Throttled, "waits %.0f s, doubling to %.0f min", firstThrottle.Seconds(), lastThrottle.Minutes())
	var waits []string
	for _, w := range quotaWaits() {
		waits = append(waits, inWords(w))
	}
	says(fault.Quota, "%s, then %s", strings.Join(waits[:len(waits)-1], ", "), waits[len(waits)-1])
	says(fault.Contention, "up to %d times", contentionTries)
	says(fault.Contention, "alone is tried after %.0f s", aloneBackoff.Seconds())
	waits = waits[:0]
	for n := range MaxRetries {
		waits = append(waits, fmt.Sprintf("%.0f", Backoff(n, 0).Minutes()))
	}
	says(fault.Document, "after %s min (%.0f s * 2^n, plus 0-%.0f %%); the %dth failure", strings.Join(waits, ", "),
		initialBackoff.Seconds(), 100*jitterShare, MaxRetries+1)
	require.Equal(t, fmt.Sprintf("one of the document's %d retries", MaxRetries), fault.OneRetry)
	for _, row := range Faults() {
		if row.Code == "systemic" {
			require.Contains(t, row.Reason, fmt.Sprintf("%d different documents", mostSuspects))
		}
	}
}

// inWords is a wait as the table has it.
func inWords(d time.Duration) string {
	if d < time.Hour {
		return fmt.Sprintf("%.0f min", d.Minutes())
	}
	return fmt.Sprintf("%.0f h", d.Hours())
}
