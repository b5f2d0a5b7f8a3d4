package blob

import (
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"sqlwriter/test/azuretest"
)

func TestEachErrorOfTheService(t *testing.T) {
	azuretest.TestService(t, service(), func(status int, word string) *azcore.ResponseError {
		return &azcore.ResponseError{StatusCode: status, ErrorCode: word}
	})
}
