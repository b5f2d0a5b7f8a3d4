package cosmosdb

import (
	"fmt"
	"net/http"
	"strconv"

	"sqlwriter/test/emulators/cosmosdb/jsonval"
)

// Substatus values that the service sends in x-ms-substatus (azcosmos cosmos_http_constants.go; the vendor's
// "HTTP status codes for Azure Cosmos DB").
const (
	substatusPartitionKeyMismatch  = 1001
	substatusPartitionKeyRangeGone = 1002
	substatusCrossPartitionQuery   = 1004
	substatusThrottled             = 3200
)

// apiError is an answer that is not a success.
type apiError struct {
	status    int
	substatus int    // 0 = no header
	message   string // for the body
	// additional is the member additionalErrorInfo of a refused cross-partition query.
	additional string
}

func (e *apiError) Error() string { return fmt.Sprintf("%d: %s", e.status, e.message) }

// errorCode is the member "code" of an error body, as the service words it.
func errorCode(status int) string {
	switch status {
	case http.StatusRequestEntityTooLarge:
		return "RequestEntityTooLarge"
	case http.StatusPreconditionFailed:
		return "PreconditionFailed"
	case http.StatusTooManyRequests:
		return "TooManyRequests"
	case 449:
		return "RetryWith"
	case http.StatusBadRequest:
		return "BadRequest"
	case http.StatusNotFound:
		return "NotFound"
	case http.StatusMethodNotAllowed:
		return "MethodNotAllowed"
	case http.StatusServiceUnavailable:
		return "ServiceUnavailable"
	case http.StatusInternalServerError:
		return "InternalServerError"
	case http.StatusRequestTimeout:
		return "RequestTimeout"
	case http.StatusFailedDependency:
		return "FailedDependency"
	}
	if text := http.StatusText(status); text != "" {
		return text
	}
	return strconv.Itoa(status)
}

// body is the error as the service writes it: the text sits as JSON inside the message.
func (e *apiError) body(activityID string) []byte {
	inner := append([]byte(`{"Errors":[`), jsonval.AppendString(nil, e.message)...)
	inner = append(inner, "]}"...)
	out := append([]byte(`{"code":`), jsonval.AppendString(nil, errorCode(e.status))...)
	out = append(out, `,"message":`...)
	out = jsonval.AppendString(out, "Message: "+string(inner)+"\r\nActivityId: "+activityID)
	if e.additional != "" {
		out = jsonval.AppendString(append(out, `,"additionalErrorInfo":`...), e.additional)
	}
	return append(out, '}')
}

func badRequest(format string, args ...any) *apiError {
	return &apiError{status: http.StatusBadRequest, message: fmt.Sprintf(format, args...)}
}

func notFound() *apiError {
	return &apiError{
		status:  http.StatusNotFound,
		message: "Resource Not Found. Learn more: https://aka.ms/cosmosdb-tsg-not-found",
	}
}

func documentNotFound() *apiError {
	return &apiError{status: http.StatusNotFound, message: "Entity with the specified id does not exist in the system."}
}

func conflict() *apiError {
	return &apiError{
		status:  http.StatusConflict,
		message: "Entity with the specified id already exists in the system.",
	}
}

func preconditionFailed() *apiError {
	return &apiError{
		status:  http.StatusPreconditionFailed,
		message: "One of the specified pre-condition is not met. Learn more: https://aka.ms/CosmosDB/sql/errors/precondition-failed",
	}
}

func tooLarge() *apiError {
	return &apiError{status: http.StatusRequestEntityTooLarge, message: "Request size is too large."}
}

func partitionKeyMismatch() *apiError {
	return &apiError{
		status: http.StatusBadRequest, substatus: substatusPartitionKeyMismatch,
		message: "PartitionKey extracted from document doesn't match the one specified in the header. Learn more: https://aka.ms/CosmosDB/sql/errors/wrong-pk-value",
	}
}

func partitionKeyIncomplete() *apiError {
	return &apiError{
		status: http.StatusBadRequest, substatus: substatusPartitionKeyMismatch,
		message: "The partition key supplied in x-ms-partitionkey header has fewer components than defined in the the collection.",
	}
}
