package blob

import (
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"sqlwriter/test/azerrtest"
)

func TestEachErrorOfTheService(t *testing.T) {
	azerrtest.TestService(t, service(), func(status int, word string) *azcore.ResponseError {
		return &azcore.ResponseError{StatusCode: status, ErrorCode: word}
	})
}
