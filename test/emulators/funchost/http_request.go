package funchost

import (
	"encoding/base64"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// httpRequest is a request as the handler is to get it.
type httpRequest struct {
	*http.Request
	path       string // requestPath
	params     []param
	query      fields
	headers    fields
	identities []identity
	body       []byte
}

func readRequest(r *http.Request, path string, params []param, who []identity, most int64) (httpRequest, error) {
	out := httpRequest{
		Request: r, path: path, params: params, query: queryOf(r.URL.RawQuery), headers: headersOf(r), identities: who,
	}
	if r.ContentLength <= 0 { // a chunked upload loses its body
		return out, nil
	}
	if r.ContentLength > most {
		return out, fmt.Errorf("request body too large: the max request body size is %d bytes", most)
	}
	var err error
	if out.body, err = io.ReadAll(r.Body); err != nil {
		return out, fmt.Errorf("read request body: %w", err)
	}
	return out, nil
}

// queryOf reads a query in its order; what cannot be decoded stays as it is.
func queryOf(raw string) fields {
	var out fields
	for part := range strings.SplitSeq(raw, "&") {
		if part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		for _, text := range []*string{&name, &value} {
			if decoded, err := url.QueryUnescape(*text); err == nil {
				*text = decoded
			}
		}
		out.add(name, value)
	}
	return out
}

// data is Data.<name> of an HTTP function in normal mode: a real object. Body is a string, base64 for octet streams and
// multipart, and absent when Content-Length is missing or 0. Source: HttpRequestExtensions.cs GetRequestAsJObject
// (docs/facts.md F12).
func (r httpRequest) data() []byte {
	address := "http://" + r.Host + encodePath(r.path)
	if r.URL.RawQuery != "" {
		address += "?" + r.URL.RawQuery
	}
	out := appendQuoted([]byte(`{"Url":`), address)
	out = appendQuoted(append(out, `,"Method":`...), r.Method)
	out = appendObject(append(out, `,"Query":`...), r.query, func(dst []byte, f field) []byte {
		return appendQuoted(dst, strings.Join(f.values, ","))
	})
	out = appendObject(append(out, `,"Headers":`...), r.headers, func(dst []byte, f field) []byte {
		return appendList(dst, f.values, appendQuoted)
	})
	out = append(out, `,"Params":{`...)
	for i, p := range r.params {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendOptional(append(appendQuoted(out, p.name), ':'), p.value)
	}
	out = appendList(append(out, `},"Identities":`...), r.identities, appendIdentity)
	if r.body != nil {
		text := string(r.body)
		if isBinary(r.Header.Get("Content-Type")) {
			text = base64.StdEncoding.EncodeToString(r.body)
		}
		out = appendQuoted(append(out, `,"Body":`...), strings.TrimPrefix(text, "\ufeff"))
	}
	return append(out, '}')
}

// metadata is the binding data of an HTTP trigger. Members of a JSON body come first, then the query, then the route;
// the whole query and the headers follow under names that a caller's member may take (docs/facts.md F13).
func (r httpRequest) metadata(trigger string, zone *time.Location) []member {
	var d bindingData
	d.applyBody(string(r.body), zone)
	last := func(dst []byte, f field) []byte { return appendQuoted(dst, f.values[len(f.values)-1]) }
	for _, f := range r.query {
		if !strings.EqualFold(f.name, "code") {
			d.set(f.name, stringValue(f.values[len(f.values)-1]))
		}
	}
	for _, p := range r.params {
		d.text(p.name, p.value)
	}
	d.add("Query", appendObject(nil, r.query, last))
	d.add("Headers",
		appendObject(nil, r.headers, func(dst []byte, f field) []byte {
			return appendQuoted(dst, strings.Join(f.values, ","))
		}))
	return d.without(trigger) // the host puts the request there, and sends none
}

func isBinary(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil &&
		(strings.EqualFold(media, "application/octet-stream") ||
			strings.HasPrefix(strings.ToLower(media), "multipart/"))
}

func appendObject(dst []byte, members fields, value func([]byte, field) []byte) []byte {
	dst = append(dst, '{')
	for i, m := range members {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = value(append(appendQuoted(dst, m.name), ':'), m)
	}
	return append(dst, '}')
}

func appendList[T any](dst []byte, list []T, value func([]byte, T) []byte) []byte {
	dst = append(dst, '[')
	for i, v := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = value(dst, v)
	}
	return append(dst, ']')
}

func appendOptional(dst []byte, text *string) []byte {
	if text == nil {
		return append(dst, "null"...)
	}
	return appendQuoted(dst, *text)
}
