package sqlserver_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
	"sqlwriter/test/conformance"
	"sqlwriter/test/sqltest"
)

// leftover makes a request fail after it wrote, and reports whether another session then finds the rows locked.
func leftover(t *testing.T, d *database) error {
	t.Helper()
	h := d.harness(t)
	h.AddLines(t, 1)
	_, err := h.Sink.Apply(t.Context(), []commit.Item{sqltest.Item("a", 10, 1)}, commit.Write, breaker.Heartbeat{})
	require.NoError(t, err)
	restore := h.Hide(t, invoice.Tracking, conformance.RuledColumn(invoice.Detail).Name)
	defer restore()
	_, err = h.Sink.Apply(t.Context(), []commit.Item{sqltest.Item("b", 11, 1)}, commit.Write, breaker.Heartbeat{})
	require.Error(t, err)
	_, err = d.db.ExecContext(t.Context(), `SET LOCK_TIMEOUT 1000;
		UPDATE dbo.IVCE_DTL SET ITM_LDSC = ITM_LDSC WHERE IVCE_DTL_UID = 1;
		UPDATE sqlwriter.ledger SET source_ts = source_ts WHERE detail_id = 1;`)
	return err
}
