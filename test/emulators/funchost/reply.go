package funchost

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
)

// Reason says why an invocation failed.
type Reason string

// The reasons.
const (
	ReasonStatus      Reason = "the handler answered with an error status" // EnsureSuccessStatusCode
	ReasonContentType Reason = "the reply's content type is not JSON"      // "Invalid HttpResponseMessage"
	ReasonReply       Reason = "the reply is not the expected JSON object"
	ReasonOutput      Reason = "the http output is not in the expected format"
	ReasonBinding     Reason = "the trigger's value cannot be bound to a string" // the handler was not called
	ReasonConnection  Reason = "the handler could not be reached or went away"
	ReasonTimeout     Reason = "the invocation ran longer than functionTimeout"
	ReasonNotReady    Reason = "the handler did not become ready"
	ReasonStopped     Reason = "the host stopped"
)

// InvocationError is why an invocation failed. Status is the handler's HTTP status for ReasonStatus.
type InvocationError struct {
	Reason Reason
	Status int
	Err    error
}

func (e *InvocationError) Error() string {
	text := string(e.Reason)
	if e.Status != 0 {
		text = fmt.Sprintf("%s: response status code does not indicate success: %d (%s)", text, e.Status,
			http.StatusText(e.Status))
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

func (e *InvocationError) Unwrap() error { return e.Err }

// reply is what a handler says (HttpScriptInvocationResult.cs). Names are matched without case, unknown ones ignored.
type reply struct {
	Outputs     map[string]json.RawMessage `json:"Outputs"`
	Logs        []logText                  `json:"Logs"`
	ReturnValue json.RawMessage            `json:"ReturnValue"`
}

// logText is an entry of Logs: Newtonsoft turns numbers and booleans into text, and objects into an error.
type logText string

func (t *logText) UnmarshalJSON(raw []byte) error {
	switch raw[0] {
	case '{', '[':
		return errors.New("an entry of Logs is neither text nor a plain value")
	case '"':
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return err
		}
		*t = logText(s)
	case 'n':
	default:
		*t = logText(raw)
	}
	return nil
}

// errNoResult means that the reply was empty or null. The host then never completes the invocation: it hangs until
// functionTimeout (docs/facts.md F17; DefaultHttpWorkerService.cs, `if (httpScriptInvocationResult != null)`).
var errNoResult = errors.New("empty reply")

// readReply applies the host's rules to a response: any status but 2xx fails; nothing, white space or null is
// errNoResult; then the content type must be application/json or text/json and the content an object.
func readReply(response *http.Response) (reply, error) {
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return reply{}, &InvocationError{Reason: ReasonStatus, Status: response.StatusCode}
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return reply{}, &InvocationError{Reason: ReasonConnection, Err: err}
	}
	if len(body) == 0 {
		return reply{}, errNoResult
	}
	if contentType := response.Header.Get("Content-Type"); !isJSON(contentType) {
		return reply{},
			&InvocationError{
				Reason: ReasonContentType,
				Err:    fmt.Errorf("invalid HttpResponseMessage: Content-Type is %q", contentType),
			}
	}
	// The formatter reads one value and looks at nothing behind it.
	decoder := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(body, []byte("\ufeff"))))
	var first json.RawMessage
	err = decoder.Decode(&first)
	if errors.Is(err, io.EOF) || string(first) == "null" {
		return reply{}, errNoResult
	}
	var out reply
	if err == nil {
		err = json.Unmarshal(first, &out)
	}
	if err != nil {
		return reply{}, &InvocationError{Reason: ReasonReply, Err: fmt.Errorf("invalid HttpResponseMessage: %w", err)}
	}
	return out, nil
}

// isJSON says whether the formatter takes the content type. It decodes by the charset; this one knows UTF-8 only.
func isJSON(contentType string) bool {
	media, parameters, err := mime.ParseMediaType(contentType)
	charset := parameters["charset"]
	return err == nil && (strings.EqualFold(media, "application/json") || strings.EqualFold(media, "text/json")) &&
		(charset == "" || strings.EqualFold(charset, "utf-8"))
}
