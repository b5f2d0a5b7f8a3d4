package blob

import (
	"errors"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"

	"sqlwriter/internal/azure"
	"sqlwriter/internal/fault"
)

// operation is the name of a call in errors, and what it is about.
type operation struct{ name, about string }

const (
	// onFile: a read of one file, which may not exist.
	onFile = "the reading of a file"
	// onContainer: everything else.
	onContainer = ""
)

// translate turns an error of the SDK into a fault. No error of the SDK leaves this package without it.
func translate(op operation, err error) error { return service().Translate(op.name, op.about, err) }

// service is the table of errors of the blob service.
func service() azure.Service {
	return azure.Service{
		Adapter: "blob", Answers: answers(), Own: []fault.Row{
			{
				Code: "settings", Kind: fault.Infrastructure, Reason: "the settings of the connection cannot be used",
				Source: "ours", Own: fault.AtStart(),
			},
		},
		Applied: "the file may have been stored", NoAnswer: evidenceWaits(),
		Word: errorCode, RequestID: "x-ms-request-id",
	}
}

// errorCode is x-ms-error-code.
func errorCode(answer *azcore.ResponseError, _ http.Header) string { return answer.ErrorCode }

// The pages of the REST reference.
const (
	commonCodes = `REST reference, "Common REST API error codes"`
	blobCodes   = `REST reference, "Blob Storage error codes"`
)

// anyCode matches every error code and an absent one.
const anyCode bloberror.Code = "*"

// existsRule is an answer to a PUT with If-None-Match: * that means "the file exists".
type existsRule struct {
	status int
	code   bloberror.Code
	reason string
	source string
}

// existsRules lists the answers that mean "the file exists". The owner's retention rules may forbid a replacement
// before the condition is checked; their answers count too.
func existsRules() []existsRule {
	return []existsRule{
		{
			409, bloberror.BlobAlreadyExists,
			"the usual answer; after a lost answer the file may be our own", "docs/facts.md F85",
		},
		{412, anyCode, "the condition, or another client's lease on the file", "docs/facts.md F85"},
		{409, bloberror.BlobImmutableDueToPolicy, "a retention policy protects the file", blobCodes},
		{409, "BlobImmutableDueToLegalHold", "a legal hold protects the file", blobCodes},
		{409, bloberror.BlobArchived, "a lifecycle rule has moved the file to the archive", blobCodes},
		{409, bloberror.BlobBeingRehydrated, "the file is on its way back from the archive", blobCodes},
		{403, bloberror.UnauthorizedBlobOverwrite, "we may add files but not replace them", blobCodes},
	}
}

// fileExists reports whether a PUT failed because the file exists.
func fileExists(err error) bool {
	var answer *azcore.ResponseError
	if !errors.As(err, &answer) {
		return false
	}
	for _, r := range existsRules() {
		if r.status == answer.StatusCode && (r.code == anyCode || string(r.code) == answer.ErrorCode) {
			return true
		}
	}
	return false
}
