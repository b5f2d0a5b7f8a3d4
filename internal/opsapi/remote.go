package opsapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
)

const (
	// readTimeout bounds a read, actTimeout an action: the app itself ends a request after 4 minutes.
	readTimeout = time.Minute
	actTimeout  = 5 * time.Minute
	// maxAnswer is the greatest length of a reply, in bytes.
	maxAnswer = 16 << 20
)

// Paths of the two functions below the app's address.
const (
	opsBase = "ops/v1"
	uiBase  = "ui/api/v1"
)

// Credential opens an app: one of its members.
type Credential struct {
	// Key is a function key; calls go to function Ops.
	Key string
	// Token returns a Microsoft Entra access token; calls go to function Ui.
	Token func(ctx context.Context) (string, error)
}

// LostError means that no reply came.
type LostError struct {
	Err error
	// Acted says that an action was asked for, which the app may have done.
	Acted bool
}

func (e *LostError) Error() string { return e.Err.Error() }

func (e *LostError) Unwrap() error { return e.Err }

// DeniedError means that the app does not accept the credential, or that its role is too small. A retry does not help.
type DeniedError struct{ Err error }

func (e *DeniedError) Error() string { return e.Err.Error() }

func (e *DeniedError) Unwrap() error { return e.Err }

// Remote makes calls to an app by HTTP. Every request carries the credential, so the address must be https or this
// machine. client is http.DefaultTransport's if nil. Errors: an invalid address.
func Remote(address string, credential Credential, client *http.Client) (Caller, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || (u.Scheme != "https" && u.Scheme != "http") {
		return nil, errors.New("the app's address: expected https://NAME.azurewebsites.net, without the key")
	}
	if u.Scheme == "http" && !loopback(u.Hostname()) {
		return nil,
			errors.New(
				"the app's address: the credential is not sent over http:// to another machine: expected https://")
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = "/api"
	}
	careful := http.Client{}
	if client != nil {
		careful = *client
	}
	// the credential must not go to another address
	careful.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &remote{base: u, credential: credential, http: &careful}, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

type remote struct {
	base       *url.URL
	credential Credential
	http       *http.Client
}

func (c *remote) call(ctx context.Context, r Row, request any) (any, error) {
	timeout := readTimeout
	if r.Method != http.MethodGet {
		timeout = actTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	call, err := c.request(ctx, r, request)
	if err != nil {
		return nil, err
	}
	changes := asksForChange(r, request)
	response, err := c.http.Do(call)
	if err != nil {
		return nil, &LostError{fmt.Errorf("the app did not answer: %w", err), changes}
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, &LostError{fmt.Errorf("the app's answer broke off: %w", err), changes}
	}
	if response.StatusCode != http.StatusOK {
		return nil, refusal(response.StatusCode, text, changes)
	}
	answer := reflect.New(r.Answer)
	if err := json.Unmarshal(text, answer.Interface()); err != nil {
		return nil, fmt.Errorf("this build does not understand the app's answer: %w", err)
	}
	return answer.Elem().Interface(), nil
}

// asksForChange reports whether a request asks for a change. A dry run does not.
func asksForChange(r Row, request any) bool {
	dry := reflect.ValueOf(request).FieldByName("DryRun")
	return r.Method != http.MethodGet && (!dry.IsValid() || !dry.Bool())
}

func (c *remote) request(ctx context.Context, r Row, request any) (*http.Request, error) {
	function, header, value := opsBase, "X-Functions-Key", c.credential.Key
	if c.credential.Token != nil {
		token, err := c.credential.Token(ctx)
		if err != nil {
			return nil, &DeniedError{err}
		}
		function, header, value = uiBase, "Authorization", "Bearer "+token
	}
	u, body := c.base.JoinPath(function, r.Path), []byte(nil)
	if r.Method == http.MethodGet {
		u.RawQuery = r.values(request).Encode()
	} else {
		var err error
		if body, err = json.Marshal(request); err != nil {
			return nil, fmt.Errorf("the request cannot be written as JSON: %w", err)
		}
	}
	// With bytes.NewReader the request has a Content-Length. Without one the host does not forward the body.
	call, err := http.NewRequestWithContext(ctx, r.Method, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("the app: %w", err)
	}
	call.Header.Set(header, value)
	if body != nil {
		call.Header.Set("Content-Type", "application/json")
	}
	return call, nil
}

// refusal makes the error of a reply: the app's own problem, or the meaning of the host's status.
func refusal(status int, body []byte, changes bool) error {
	var p Problem
	if json.Unmarshal(body, &p) == nil && p.Detail != "" {
		switch {
		case status == http.StatusUnauthorized, status == http.StatusForbidden:
			return &DeniedError{fmt.Errorf("the app answers %d: %s", status, p.Detail)}
		case p.Kind == KindRequest:
			return &ops.RequestError{Refusal: ops.Refusal(p.Code), Message: p.Detail}
		}
		err, front := &fault.Error{Kind: fault.Kind(p.Kind), Code: p.Code, Reason: p.Detail}, ""
		if changes { // it failed on the way: the entry in the audit log comes before the work
			front = ", and an entry in `audit list` would say that the action was begun"
		}
		return fmt.Errorf("the app answers %d%s: %w", status, front, err)
	}
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return &DeniedError{
			fmt.Errorf(
				"the app answers %d: it is stopped, or the key or the token is not valid for it, or its network rules refuse this machine", status),
		}
	case http.StatusNotFound:
		return errors.New("the app answers 404: there is no operators' API at this address")
	case http.StatusBadGateway, http.StatusGatewayTimeout, http.StatusInternalServerError,
		http.StatusServiceUnavailable:
		return &LostError{
			fmt.Errorf("the app answers %d without a reason: its host did not complete the request", status), changes,
		}
	}
	return fmt.Errorf("the app answers %d", status)
}
