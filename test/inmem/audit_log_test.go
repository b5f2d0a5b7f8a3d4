package inmem_test

import (
	"testing"
	"time"

	"sqlwriter/test/conformance"
	"sqlwriter/test/inmem"
)

func TestAuditLog(t *testing.T) {
	clock := time.Date(2025, 12, 18, 10, 0, 0, 123_456_789, time.FixedZone("", -6*3600))
	now := func() time.Time { return clock }
	conformance.TestAuditLog(t, func(testing.TB) conformance.AuditLogHarness {
		s := inmem.NewRunStore(now, conformance.AuditLogSysName)
		other := s.For(conformance.AuditLogOtherSysName)
		return conformance.AuditLogHarness{
			AuditLog: s.AuditLog(), Store: s, Other: other.AuditLog(), OtherStore: other, Now: now,
		}
	})
}
