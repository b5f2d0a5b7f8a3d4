package inmem_test

import (
	"testing"
	"time"

	"sqlwriter/test/conformance"
	"sqlwriter/test/inmem"
)

func TestFindings(t *testing.T) {
	conformance.TestFindings(t, func(testing.TB) conformance.FindingsFixture {
		clock := time.Now()
		runs, ledger := inmem.NewRunStore(func() time.Time { return clock }, "web"), inmem.NewSink()
		other := runs.For("dev")
		return conformance.FindingsFixture{
			Findings: runs.Findings(ledger), Other: other.Findings(ledger), AuditLog: runs.AuditLog(),
			Now: func() time.Time { return clock }, Age: func(_ testing.TB, d time.Duration) { clock = clock.Add(d) },
			Ledger: ledger,
		}
	})
}
