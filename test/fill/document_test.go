package fill_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
	"sqlwriter/test/fill"
	"sqlwriter/test/mapping"
)

func TestAFilledDocumentHasAValueForEveryColumn(t *testing.T) {
	const bare = `{
  "id": "2025-12-17 10:30:00.000000-06:00-0001-7", "_etag": "\"1\"", "_ts": 1765989015,
  "request_details": {"sys_name": "web"},
  "invoice_details_from_rpa": {"IVCE_DTL_UID": 7},
  "process_output": {"part_number": "425"}
}`
	full := fill.Document(bare)
	d, err := invoice.Reader{}.Read([]byte(full), time.Date(2025, 12, 17, 16, 35, 0, 0, time.UTC))
	require.NoError(t, err)
	require.NoError(t, d.Problem)
	for i, c := range mapping.InUse().Columns() {
		if c.Source == invoice.FromDocument {
			require.False(t, d.Values[i].Null, c.From())
		}
	}
	require.True(t, strings.HasSuffix(full, `"part_number": "425"}`+"\n}"), "what was there stays")
	require.Equal(t, full, fill.Document(full), "nothing is there twice")
}
