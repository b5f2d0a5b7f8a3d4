package funchost

import (
	"bytes"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// payload is what a trigger hands to an invocation. It is built once: every retry gets the same bytes.
type payload struct {
	// data is the trigger's value under Data, JSON as it stands on the wire.
	data []byte
	// metadata are members beside sys and RetryContext, in order.
	metadata []member
	// items is the number of documents, for events.
	items int
}

// member is a name with JSON as its value.
type member struct {
	name  string
	value []byte
}

// cosmosData is the wire form of a batch: a JSON string that holds a JSON string literal that holds the array
// (docs/facts.md F2 and F5; CosmosDBTriggerValueBinder.cs, ScriptInvocationContextExtensions.cs).
func cosmosData(items []json.RawMessage, zone *time.Location) ([]byte, error) {
	text := []byte{'['}
	for i, item := range items {
		if i > 0 {
			text = append(text, ',')
		}
		var err error
		if text, err = newtonsoft(text, item, zone); err != nil {
			return nil, fmt.Errorf("change feed item %d: %w", i, err)
		}
	}
	return stringValue(string(append(text, ']'))), nil
}

// stringValue is how a .NET string goes over the wire: its JSON literal, as a JSON string.
func stringValue(s string) []byte {
	literal := appendQuoted(make([]byte, 0, len(s)+len(s)/4+2), s)
	return appendQuoted(make([]byte, 0, len(literal)+len(literal)/4+2), string(literal))
}

// retryContext is Metadata.RetryContext, there from the first attempt when the function has a retry policy
// (docs/facts.md F4; SetRetryContext copies three of the five members).
type retryContext struct {
	count, max int
	err        error // of the attempt before; nil at first
}

// retryException is the exception as it was recorded, with its stack: a handler gets 3 KB that it did not ask for.
//
//go:embed retry_exception.json
var retryException string

func (r retryContext) appendJSON(dst []byte, functionName, invocation string) []byte {
	dst = fmt.Appendf(dst, `{"RetryCount":%d,"MaxRetryCount":%d,"Exception":`, r.count, r.max)
	if r.err == nil {
		dst = append(dst, "null"...)
	} else {
		status, text := "null", r.err.Error()
		var failed *InvocationError
		if errors.As(r.err, &failed) && failed.Reason == ReasonStatus {
			status = strconv.Itoa(failed.Status)
			text = fmt.Sprintf("Response status code does not indicate success: %d (%s).", failed.Status,
				http.StatusText(failed.Status))
		}
		dst = fmt.Appendf(dst, strings.TrimSpace(retryException), appendQuoted(nil, invocation),
			appendQuoted(nil, "Host.Functions."+functionName),
			appendQuoted(nil, "Exception while executing function: Functions."+functionName), status,
			appendQuoted(nil, text))
	}
	return append(dst, `,"Instance":null,"State":{}}`...)
}

// Members of Metadata that the host adds itself. A trigger's own member of the first name takes its place; the second
// takes the place of a trigger's own.
const (
	systemMember = "sys"
	retryMember  = "RetryContext"
	// movedMember is where the host puts its own sys in an HTTP function when the caller has one.
	movedMember = "$sys"
)

// envelope builds the body of an invocation. Source: HttpScriptInvocationContext.cs.
func envelope(f *function, id string, p payload, retry *retryContext, now time.Time) []byte {
	body := make([]byte, 0, len(p.data)+512)
	body = append(body, `{"Data":{`...)
	body = append(appendQuoted(body, f.trigger), ':')
	body = append(body, p.data...)
	body = append(body, `},"Metadata":{`...)
	theirs := false // the trigger's data hides the host's own
	for _, m := range p.metadata {
		if m.name == retryMember && retry != nil {
			continue
		}
		theirs = theirs || m.name == systemMember
		body = append(appendQuoted(body, m.name), ':')
		body = append(append(body, m.value...), ',')
	}
	switch {
	case !theirs:
		body = append(appendSystemData(body, systemMember, f.name, now), ',')
	case f.http != nil:
		body = append(appendSystemData(body, movedMember, f.name, now), ',')
	}
	if retry != nil {
		body = append(appendQuoted(body, retryMember), ':')
		body = append(retry.appendJSON(body, f.name, id), ',')
	}
	return append(bytes.TrimSuffix(body, []byte{','}), `}}`...)
}

// appendSystemData writes the host's own member (SystemBindingData.cs).
func appendSystemData(dst []byte, name, functionName string, now time.Time) []byte {
	dst = append(appendQuoted(dst, name), `:{"MethodName":`...)
	dst = appendQuoted(dst, functionName)
	dst = append(dst, `,"UtcNow":"`...)
	dst = now.UTC().AppendFormat(dst, "2006-01-02T15:04:05.9999999Z")
	dst = append(dst, `","RandGuid":"`...)
	return append(append(dst, newGUID()...), `"}`...)
}

// newGUID returns a random version 4 GUID.
func newGUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
