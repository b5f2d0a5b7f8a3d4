package inmem_test

import (
	"testing"
	"time"

	"sqlwriter/internal/run"
	"sqlwriter/test/conformance"
	"sqlwriter/test/inmem"
)

func TestRetention(t *testing.T) {
	conformance.TestRetention(t, func(testing.TB) conformance.RetentionFixture {
		clock := time.Now()
		now := func() time.Time { return clock }
		runs, ledger := inmem.NewRunStore(now, "web"), inmem.NewSink()
		other := runs.For("dev")
		return conformance.RetentionFixture{
			RunStore: conformance.RunStoreFixture{
				Store: runs, Now: now, Age: func(_ testing.TB, d time.Duration) { clock = clock.Add(d) },
				Audits: func(testing.TB) []run.Audit { return runs.Audits() }, Workers: workersOf(runs),
			},
			Retention: runs.Retention(), OtherRetention: other.Retention(), OtherRuns: other,
			Findings: runs.Findings(ledger), OtherFindings: other.Findings(ledger),
			Rows: func(testing.TB) map[string]int { return runs.Rows() },
		}
	})
}
