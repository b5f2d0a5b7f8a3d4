package inmem_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/ops"
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
	s := inmem.NewRunStore(time.Now, "web")
	j := s.AuditLog()
	counts := map[string]int{"done": 1}
	detail := []byte(`{"a":1}`)
	require.NoError(t, j.Start(t.Context(), ops.Run{ID: "r", Counts: counts, Filter: detail}, ops.Audit{Detail: detail}))
	for range 2 {
		counts["done"], detail[5] = 2, '2'
		runs, err := s.ListRuns(t.Context(), 1)
		require.NoError(t, err)
		audits, err := j.Audits(t.Context(), ops.AuditQuery{Limit: 1})
		require.NoError(t, err)
		require.Equal(t, []any{1, `{"a":1}`, `{"a":1}`}, []any{runs[0].Counts["done"], string(runs[0].Filter), string(audits[0].Detail)})
		counts, detail = runs[0].Counts, audits[0].Detail
		runs[0].Filter[5] = '2'
	}
}
