package funchost

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
)

// httpReply is what the caller of an HTTP function gets.
type httpReply struct {
	status int
	header http.Header
	body   []byte
}

// httpOutputValue is Outputs.<res> (HttpOutputBindingResponse.cs). Members are matched without case.
type httpOutputValue struct {
	StatusCode json.RawMessage            `json:"statusCode"`
	Status     json.RawMessage            `json:"status"`
	Body       json.RawMessage            `json:"body"`
	Headers    map[string]json.RawMessage `json:"headers"`
}

// httpResult turns a handler's reply into the caller's. Without the output it is 200 and empty; an output that is no
// response object fails the invocation. Source: HttpScriptInvocationResultExtensions.cs, HttpBinding.cs.
func httpResult(f *function, out reply) (httpReply, error) {
	plain := httpReply{status: http.StatusOK}
	if f.httpOut == "" {
		return plain, nil
	}
	raw, named := out.Outputs[f.httpOut]
	if f.httpOut == "$return" {
		return returnResult(out.ReturnValue)
	}
	if !named {
		return plain, nil
	}
	// The host reads the output's text: a string that holds an object passes too.
	var text string
	if json.Unmarshal(raw, &text) == nil {
		raw = json.RawMessage(text)
	}
	return responseObject(raw)
}

func responseObject(raw json.RawMessage) (httpReply, error) {
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
	out := httpReply{status: http.StatusOK, header: http.Header{}}
	for _, text := range []json.RawMessage{value.StatusCode, value.Status} {
		if plain := plainText(text); plain != "" {
			n, err := strconv.Atoi(plain)
			if err != nil || n < 100 || n > 999 {
				continue // a status that is no number is passed over
			}
			out.status = n
			break
		}
	}
	for name, text := range value.Headers {
		out.header.Set(name, plainText(text))
	}
	out.setBody(value.Body)
	return out, nil
}

// setBody writes a text as it is and anything else as JSON.
func (r *httpReply) setBody(raw json.RawMessage) {
	contentType := "application/json; charset=utf-8"
	var text string
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return
	case json.Unmarshal(raw, &text) == nil:
		contentType = "text/plain; charset=utf-8"
		r.body = []byte(text)
	default:
		var compact bytes.Buffer
		_ = json.Compact(&compact, raw) // it has been parsed before
		r.body = compact.Bytes()
	}
	if r.header == nil {
		r.header = http.Header{}
	}
	if r.header.Get("Content-Type") == "" {
		r.header.Set("Content-Type", contentType)
	}
}

// returnResult is an http output named $return. A text that happens to be base64 is silently decoded (docs/facts.md F18,
// GetBindingValue).
func returnResult(raw json.RawMessage) (httpReply, error) {
	out := httpReply{status: http.StatusOK}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		if decoded, err := base64.StdEncoding.DecodeString(text); err == nil && text != "" {
			out.header = http.Header{"Content-Type": {"application/octet-stream"}}
			out.body = decoded
			return out, nil
		}
	}
	if len(raw) > 0 && raw[0] == '{' {
		var members map[string]json.RawMessage
		if err := json.Unmarshal(raw, &members); err != nil {
			return httpReply{}, &InvocationError{Reason: ReasonOutput, Err: err}
		}
		if _, isResponse := members["body"]; isResponse {
			return responseObject(raw)
		}
	}
	out.setBody(raw)
	return out, nil
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
	maps.Copy(w.Header(), r.header)
	if r.body == nil {
		w.Header().Set("Content-Length", "0")
	}
	w.WriteHeader(r.status)
	if _, err := w.Write(r.body); err != nil {
		panic(fmt.Errorf("%w: %w", http.ErrAbortHandler, err)) // the caller is gone
	}
}
