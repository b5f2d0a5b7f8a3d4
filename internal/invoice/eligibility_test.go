package invoice_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
)

// The rules of eligibility are in the table (rules_document_test.go, "environment" and "state"). These are the cases
// that a table of documents cannot show.
func TestADocumentOfNobodyIsNeverOursEvenWithoutASetting(t *testing.T) {
	require.Equal(t, invoice.NotOurs, invoice.Document{}.Eligibility(time.Unix(0, 0), ""))
	ours := invoice.Document{SysName: "web", State: invoice.State{Status: invoice.Pending}}
	require.Equal(t, invoice.Eligible, ours.Eligibility(time.Unix(0, 0), "web"))
}

func TestADocumentThatCannotBeReadIsTakenUpToSaySo(t *testing.T) {
	d := readRule(t, `{"process_output": null}`)
	require.Error(t, d.Problem)
	require.Equal(t, invoice.Eligible, d.Eligibility(rulesNow(), "web"))
}

func TestNumbersBeyondAllReasonOverflowNothing(t *testing.T) {
	d := readRule(t,
		`{"id": "doc1", "_ts": 9223372036854775807, "sql_writer": {"retry_count": 9223372036854775807, "reprocess_count": 4294967296}}`)
	require.Error(t, d.Problem, "its version lies in the future")
	require.Positive(t, d.Version.US)
	require.Zero(t, d.State.RetryCount)
	require.Zero(t, d.State.ReprocessCount)
}
