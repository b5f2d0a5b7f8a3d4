package shared_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/shared"
)

// A person may write any text into a column of texts.
func TestDecimalKeepsWhatWeWouldNotWrite(t *testing.T) {
	for text, want := range map[string]string{
		"0.95": "0.9500", "1": "1.0000", "-0": "0.0000", ".5": "0.5000", "9.5e-1": "0.9500",
		"0.95001": "0.95001", "0.950010": "0.95001",
		"123e999999": "123e999999", "123e-999999": "123e-999999", // written out they have a million digits
	} {
		v, err := shared.Decimal(invoice.Column{Kind: invoice.Decimal, Precision: 5, Scale: 4}, text)
		require.NoError(t, err, text)
		require.Equal(t, invoice.Of(want), v, text)
	}
	for _, text := range []string{"", "x", "1/3", "0x1p9", "1e", "1_000", "Inf"} {
		_, err := shared.Decimal(invoice.Column{Scale: 4}, text)
		require.Error(t, err, text)
	}
}
