package inmem_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
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

// What was handed in or out belongs to the caller.
func TestTheAuditLogSharesNothing(t *testing.T) {
	j := inmem.NewAuditLog(time.Now, "web")
	detail := []byte(`{"a":1}`)
	require.NoError(t, j.Write(t.Context(), run.Audit{Detail: detail}))
	for range 2 {
		detail[5] = '2'
		audits, err := j.Audits(t.Context(), ops.AuditQuery{Limit: 1})
		require.NoError(t, err)
		require.Equal(t, `{"a":1}`, string(audits[0].Detail))
		detail = audits[0].Detail
	}
}
