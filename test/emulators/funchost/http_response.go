package funchost

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// httpReply is what the caller of an HTTP function gets.
type httpReply struct {
	status int
	header http.Header
	body   []byte
	// sized says that the length is announced; else the body is chunked.
	sized bool
}

// httpOutputValue is Outputs.<res> (HttpOutputBindingResponse.cs). Members are matched without case.
type httpOutputValue struct {
	StatusCode json.RawMessage            `json:"statusCode"`
	Body       json.RawMessage            `json:"body"`
	Headers    map[string]json.RawMessage `json:"headers"`
}

const plainType = "text/plain; charset=utf-8"

// httpResult turns a handler's reply into the caller's (docs/facts.md F19). Without Outputs the return value is the
// answer; without the function's own output it is an empty object; an output that is no response object fails the
// invocation. Source: HttpScriptInvocationResultExtensions.cs, HttpBinding.cs.
func httpResult(f *function, out reply, zone *time.Location) (httpReply, error) {
	switch {
	case f.httpOut == "":
		return httpReply{status: http.StatusOK}, nil
	case out.Outputs == nil:
		return returnReply(out.ReturnValue), nil
	}
	raw, named := out.Outputs[f.httpOut]
	if !named {
		raw = json.RawMessage(`{"body":{}}`)
	}
	// The host reads the output's text: a string that holds an object passes too.
	var text string
	if json.Unmarshal(raw, &text) == nil {
		raw = json.RawMessage(text)
	}
	return responseObject(raw, zone)
}

// returnReply is the return value as the answer itself.
func returnReply(value json.RawMessage) httpReply {
	var text string
	switch {
	case len(value) == 0 || string(value) == "null":
		return httpReply{status: http.StatusNoContent}
	case json.Unmarshal(value, &text) == nil:
		return httpReply{status: http.StatusOK, header: http.Header{"Content-Type": {plainType}}, body: []byte(text)}
	}
	var compact bytes.Buffer
	_ = json.Compact(&compact, value) // it has been parsed before
	return httpReply{
		status: http.StatusOK, header: http.Header{"Content-Type": {"application/json; charset=utf-8"}},
		body: compact.Bytes(), sized: true,
	}
}

func responseObject(raw json.RawMessage, zone *time.Location) (httpReply, error) {
	bad := func(err error) (httpReply, error) {
		return httpReply{}, &InvocationError{Reason: ReasonOutput, Err: err}
	}
	var value *httpOutputValue
	if err := json.Unmarshal(raw, &value); err != nil {
		return bad(err)
	}
	if value == nil {
		return bad(errors.New("the output is null"))
	}
	out := httpReply{status: http.StatusOK, header: http.Header{"Content-Type": {plainType}}}
	if n, err := strconv.Atoi(plainText(value.StatusCode)); err == nil { // what is no number is passed over
		out.status = n
	}
	for name, raw := range value.Headers {
		text, err := headerText(name, raw)
		if err != nil {
			return bad(err)
		}
		if strings.EqualFold(name, "Content-Type") && !strings.Contains(strings.ToLower(text), "charset=") {
			text += "; charset=utf-8"
		}
		out.header.Set(name, text)
	}
	var err error
	if out.body, err = outputBody(value.Body, zone); err != nil {
		return bad(err)
	}
	return out, nil
}

// headerText is a header's value as text. What the web server does not send fails the invocation: null, a list, a
// character beyond ASCII, a line break, a name with a blank.
func headerText(name string, raw json.RawMessage) (string, error) {
	if string(raw) == "null" || raw[0] == '[' || raw[0] == '{' {
		return "", fmt.Errorf("header %s: no text", name)
	}
	text := plainText(raw)
	if string(raw) == "true" || string(raw) == "false" {
		text = strings.ToUpper(text[:1]) + text[1:] // the .NET way
	}
	for _, c := range name + text {
		if c < ' ' || c > '~' {
			return "", fmt.Errorf("header %s: invalid character", name)
		}
	}
	if name == "" || strings.ContainsAny(name, " :") {
		return "", fmt.Errorf("header %q: invalid name", name)
	}
	return text, nil
}

// outputBody is the body as text: a text as it is, an object or a list indented, with dates and numbers printed anew.
func outputBody(raw json.RawMessage, zone *time.Location) ([]byte, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	switch raw[0] {
	case '{', '[':
		printed, err := reprint(nil, raw, zone, appendScriptNumber)
		if err != nil {
			return nil, err
		}
		var out bytes.Buffer
		err = json.Indent(&out, printed, "", "  ")
		return out.Bytes(), err
	case 't':
		return []byte("True"), nil
	case 'f':
		return []byte("False"), nil
	}
	return []byte(plainText(raw)), nil
}

// appendScriptNumber prints a number as the host does in a body: what is no 64-bit integer goes through a double and
// comes out in digits, without a fraction of zeros.
func appendScriptNumber(dst []byte, text string) []byte {
	if _, err := strconv.ParseInt(text, 10, 64); err == nil {
		return append(dst, text...)
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.Abs(f) >= 1e21 {
		return appendNumber(dst, text)
	}
	return strconv.AppendFloat(dst, f, 'f', -1, 64)
}

// plainText is a JSON value as text: a string's content, a number's digits.
func plainText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	if string(raw) == "null" {
		return ""
	}
	return string(raw)
}

func (r httpReply) write(w http.ResponseWriter) {
	length := r.header.Get("Content-Length")
	wrong := length != "" && length != strconv.Itoa(len(r.body))
	if r.status < 100 || r.status > 999 || r.status == http.StatusNotModified || wrong ||
		r.header.Get("Transfer-Encoding") != "" {
		r.writeRaw(w, wrong)
		return
	}
	maps.Copy(w.Header(), r.header)
	empty := r.status == http.StatusNoContent || r.status < 200
	if len(r.body) == 0 && !empty {
		w.Header().Set("Content-Length", "0")
	}
	w.WriteHeader(r.status)
	if len(r.body) == 0 || empty {
		return
	}
	_, err := w.Write(r.body)
	if err == nil && !r.sized {
		err = http.NewResponseController(w).Flush()
	}
	if err != nil {
		panic(fmt.Errorf("%w: %w", http.ErrAbortHandler, err)) // the caller is gone
	}
}

// writeRaw sends what Go's server would not: a status of more or less than three digits, a 304 with a Content-Type, and
// what a handler breaks with a Content-Length or Transfer-Encoding of its own.
func (r httpReply) writeRaw(w http.ResponseWriter, cut bool) {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(fmt.Errorf("%w: %w", http.ErrAbortHandler, err))
	}
	defer func() { _ = conn.Close() }()
	_, _ = fmt.Fprintf(buffered, "HTTP/1.1 %d %s\r\n", r.status, http.StatusText(r.status))
	_ = r.header.Write(buffered)
	_, _ = buffered.WriteString("\r\n")
	if !cut && r.status != http.StatusNotModified {
		_, _ = buffered.Write(r.body)
	}
	_ = buffered.Flush() // the caller may be gone
}
