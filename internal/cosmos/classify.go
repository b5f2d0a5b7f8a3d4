package cosmos

import (
	"errors"
	"net/http"
	"regexp"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"sqlwriter/internal/azure"
	"sqlwriter/internal/fault"
)

// operation is the name of a call in errors, and what it is about. The same status means different things for a
// document and for its container.
type operation struct{ name, about string }

const (
	// onDocument: a point read or a write of one document.
	onDocument = "one document"
	// onContainer: a query, metadata, the first request of a client, or the making of a container. Its errors blame no
	// document.
	onContainer = ""
)

// translate turns an error of the SDK into a fault. No error of the SDK leaves this package without it.
func translate(op operation, err error) error {
	err = service().Translate(op.name, op.about, err)
	var answer *azcore.ResponseError
	if e := fault.As(err); e != nil && e.Code == codeNoRole && errors.As(err, &answer) {
		if found := withoutRole.FindStringSubmatch(answer.Error()); found != nil {
			e.Reason += ": it may not " + found[1] + " on " + found[2]
		}
	}
	return err
}

// codeNoRole is the code of a request without a role of the data plane. The answer names the action and the resource.
const codeNoRole = "403/5301"

var withoutRole = regexp.MustCompile(`perform action \[([\w./]+)\] on resource \[([^\]]{1,200})\]`)

// service is the table of errors of Cosmos DB.
func service() azure.Service {
	return azure.Service{
		Adapter: "cosmos", Answers: answers(), Own: ownRows(),
		Applied: "a write may have been applied", NoAnswer: offeredAgain(),
		Word: substatus, RequestID: "x-ms-activity-id",
	}
}

// substatus is the service's word beside the status; 0 is none.
func substatus(_ *azcore.ResponseError, h http.Header) string {
	if sub := h.Get("x-ms-substatus"); sub != "0" {
		return sub
	}
	return ""
}

// statusOf gives the service's status in an error of this package, or 0 when there was no answer.
func statusOf(err error) int {
	var answer *azcore.ResponseError
	if errors.As(err, &answer) {
		return answer.StatusCode
	}
	return 0
}
