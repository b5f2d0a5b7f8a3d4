package funchost

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// requestData is Data.<name> of an HTTP function in normal mode: a real object. Body is a string, base64 for octet streams
// and multipart, and absent when Content-Length is missing or 0, so a chunked upload loses its body.
// Source: HttpRequestExtensions.cs GetRequestAsJObject (docs/facts.md F12).
func requestData(r *http.Request, params map[string]*string, level authLevel) ([]byte, error) {
	headers := r.Header.Clone()
	headers.Set("Host", r.Host)
	if r.ContentLength > 0 {
		headers.Set("Content-Length", strconv.FormatInt(r.ContentLength, 10))
	}
	query := map[string]string{}
	for name, values := range r.URL.Query() {
		query[name] = strings.Join(values, ",")
	}
	data := struct {
		URL        string             `json:"Url"`
		Method     string             `json:"Method"`
		Query      map[string]string  `json:"Query"`
		Headers    http.Header        `json:"Headers"`
		Params     map[string]*string `json:"Params"`
		Identities []identity         `json:"Identities"`
		Body       *string            `json:"Body,omitempty"`
	}{
		URL:    "http://" + r.Host + r.URL.RequestURI(),
		Method: r.Method, Query: query, Headers: headers, Params: params, Identities: identities(level),
	}
	if r.ContentLength > 0 {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, fmt.Errorf("read request body: %w", err)
		}
		text := string(body)
		if isBinary(r.Header.Get("Content-Type")) {
			text = base64.StdEncoding.EncodeToString(body)
		}
		data.Body = &text
	}
	return json.Marshal(data)
}

func isBinary(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && (strings.EqualFold(media, "application/octet-stream") || strings.HasPrefix(strings.ToLower(media), "multipart/"))
}

// identity is a ClaimsIdentity as Newtonsoft prints it, without what is always null.
type identity struct {
	AuthenticationType *string
	IsAuthenticated    bool
	Claims             []claim
	Name               *string
	NameClaimType      string
	RoleClaimType      string
}

type claim struct {
	Issuer, OriginalIssuer string
	Type, Value, ValueType string
}

func identities(level authLevel) []identity {
	out := identity{
		Claims:        []claim{},
		NameClaimType: "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/name",
		RoleClaimType: "http://schemas.microsoft.com/ws/2008/06/identity/claims/role",
	}
	value := map[authLevel]string{authFunction: "Function", authAdmin: "Admin"}[level]
	if value != "" {
		kind := "WebJobsAuthLevel"
		out.AuthenticationType, out.IsAuthenticated = &kind, true
		out.Claims = append(out.Claims, claim{
			Issuer: "LOCAL AUTHORITY", OriginalIssuer: "LOCAL AUTHORITY",
			Type: "http://schemas.microsoft.com/2017/07/functions/claims/authlevel", Value: value,
			ValueType: "http://www.w3.org/2001/XMLSchema#string",
		})
	}
	return []identity{out}
}

// requestMetadata is the binding data of an HTTP trigger: the query, the headers and the route's parameters, each string
// in its wire form.
func requestMetadata(r *http.Request, params map[string]*string) ([]member, error) {
	query, headers := map[string]string{}, map[string]string{}
	for name, values := range r.URL.Query() {
		query[name] = strings.Join(values, ",")
	}
	for name, values := range r.Header {
		headers[name] = strings.Join(values, ",")
	}
	var out []member
	for _, part := range []struct {
		name  string
		value map[string]string
	}{{"Query", query}, {"Headers", headers}} {
		text, err := json.Marshal(part.value)
		if err != nil {
			return nil, err
		}
		out = append(out, member{part.name, text})
	}
	for name, value := range params {
		if value != nil {
			out = append(out, member{name, stringValue(*value)})
		}
	}
	return out, nil
}
