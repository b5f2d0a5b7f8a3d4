package cosmos

import (
	"net/http"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/test/azuretest"
)

func TestEachErrorOfTheService(t *testing.T) {
	azuretest.TestService(t, service(), func(status int, word string) *azcore.ResponseError {
		answer := &azcore.ResponseError{StatusCode: status, RawResponse: &http.Response{Header: http.Header{}}}
		answer.RawResponse.Header.Set("x-ms-substatus", word)
		return answer
	})
}

// The codes that the rows for several codes cover, and some that they do not.
func TestRowsStandForTheirCodes(t *testing.T) {
	rows := map[string]fault.Row{}
	for _, row := range Faults() {
		rows[row.Code] = row
	}
	for code, covered := range map[string]string{
		"429/*": "429/3200", "500-599": "503", "404/*": "404/1013", "100-999": "306/1",
	} {
		require.True(t, rows[code].StandsFor(covered), "%s: %s", code, covered)
	}
	for code, other := range map[string]string{
		"429/*": "430", "500-599": "600", "404": "404/1013", "404/1002": "404/1003", "100-999": "word",
	} {
		require.False(t, rows[code].StandsFor(other), "%s: %s", code, other)
	}
}
