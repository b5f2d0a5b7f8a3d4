package cosmos

import (
	"net/http"
	"strconv"
	"strings"
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

// The answers of docs/requirements.md R32 and docs/facts.md F70 for one document, written down independently.
// TestEveryAnswerHasItsKind checks the others through the SDK.
func TestTranslateTheNamedAnswers(t *testing.T) {
	const infra = fault.Infrastructure
	for code, want := range map[string]struct {
		kind      fault.Kind
		condition fault.Condition
	}{
		"429/3200": {fault.Throttled, ""}, "429/0": {fault.Throttled, ""}, "449/0": {fault.Contention, ""},
		"403/3": {infra, ""}, "403/1008": {infra, ""}, "404/1002": {infra, ""},
		"408/0": {infra, ""}, "410/0": {infra, ""},
		"500/0": {infra, ""}, "502/0": {infra, ""}, "503/0": {infra, ""}, "504/0": {infra, ""}, "401/0": {infra, ""},
		"404/0": {fault.Document, fault.Gone}, "412/0": {fault.Contention, fault.Changed},
		"413/0": {fault.Document, fault.TooLarge},
		"400/0": {fault.Document, ""}, "409/0": {fault.Document, ""},
	} {
		text, sub, _ := strings.Cut(code, "/")
		status, err := strconv.Atoi(text)
		require.NoError(t, err)
		answer := &azcore.ResponseError{StatusCode: status, RawResponse: &http.Response{Header: http.Header{}}}
		answer.RawResponse.Header.Set("x-ms-substatus", sub)
		got := fault.As(translate(operation{"cosmos: test", onDocument}, answer))
		require.Equal(t, want.kind, got.Kind, code)
		require.Equal(t, want.condition, got.Condition, code)
	}
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
