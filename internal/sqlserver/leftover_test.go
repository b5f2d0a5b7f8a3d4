package sqlserver_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/porttest"
	"sqlwriter/internal/writer"
)

// leftover makes a request fail after it has written, and tells whether somebody else then finds the rows locked.
func leftover(t *testing.T, d *database) error {
	t.Helper()
	h := d.harness(t)
	h.AddLines(t, 1, 2)
	good, bad := item("a", 10, 1), item("b", 10, 2)
	_, err := h.Sink.Apply(t.Context(), []writer.Item{good}, writer.Write)
	require.NoError(t, err)
	h.Constrain(t, invoice.Tracking, porttest.CheckRefuses)
	setText(t, &bad, porttest.RuledColumn, porttest.RefusedCode)
	good.SourceTS, good.Hash = 2, bad.Hash
	_, err = h.Sink.Apply(t.Context(), []writer.Item{good, bad}, writer.Write)
	require.Equal(t, fault.Document, fault.KindOf(err), "%v", err)
	_, err = d.db.ExecContext(t.Context(), `SET LOCK_TIMEOUT 1000;
		UPDATE dbo.IVCE_DTL SET ITM_LDSC = ITM_LDSC WHERE IVCE_DTL_UID = 1;
		UPDATE sqlwriter.ledger SET source_ts = source_ts WHERE detail_id = 1;`)
	return err
}
