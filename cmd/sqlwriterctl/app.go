package main

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
	"strconv"
	"strings"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
)

// Environment variables.
const (
	appVariable = "SQLWRITER_APP"
	keyVariable = "SQLWRITER_KEY" //nolint:gosec // a name
)

const (
	// askTimeout bounds a query, actTimeout an action: the app itself ends a request after 4 minutes.
	askTimeout = time.Minute
	actTimeout = 5 * time.Minute
	// maxAnswer is the greatest length of a reply, in bytes.
	maxAnswer = 16 << 20
)

// appClient calls an app's Ops function. It implements operations.
type appClient struct {
	base *url.URL
	key  string
	http *http.Client
}

// newAppClient checks the address. Every request carries the key, so the connection must be encrypted or local.
func newAppClient(address, key string) (*appClient, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || (u.Scheme != "https" && u.Scheme != "http") {
		return nil, errors.New("the app's address: expected https://NAME.azurewebsites.net, without the key")
	}
	if u.Scheme == "http" && !loopback(u.Hostname()) {
		return nil, errors.New("the app's address: the key is not sent over http:// to another machine: expected https://")
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = "/api"
	}
	return &appClient{base: u, key: key, http: &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the key must not go to another address
	}}, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

// Status implements operations.
func (c *appClient) Status(ctx context.Context) (ops.Status, error) {
	return ask[ops.Status](ctx, c, "status", nil)
}

// Why implements operations.
func (c *appClient) Why(ctx context.Context, id string) (ops.Explanation, error) {
	return ask[ops.Explanation](ctx, c, "why", url.Values{"id": {id}})
}

// Audits implements operations.
func (c *appClient) Audits(ctx context.Context, q ops.AuditQuery) ([]ops.Audit, error) {
	parameters := map[string]string{"run": q.Run, "action": q.Action}
	if q.All {
		parameters["all"] = "true"
	}
	answer, err := ask[struct{ Audits []ops.Audit }](ctx, c, "audits", query(q.Limit, parameters))
	return answer.Audits, err
}

// Pause implements operations.
func (c *appClient) Pause(ctx context.Context, r ops.FlowRequest) (ops.FlowChange, error) {
	return act[ops.FlowChange](ctx, c, "pause", r)
}

// Resume implements operations.
func (c *appClient) Resume(ctx context.Context, r ops.FlowRequest) (ops.FlowChange, error) {
	return act[ops.FlowChange](ctx, c, "resume", r)
}

// MarkCommitted implements operations.
func (c *appClient) MarkCommitted(ctx context.Context, r ops.MarkRequest) (ops.Marked, error) {
	return act[ops.Marked](ctx, c, "mark-committed", r)
}

func limited(limit int) url.Values {
	if limit == 0 {
		return nil
	}
	return url.Values{"limit": {strconv.Itoa(limit)}}
}

// ask sends a GET request, act a POST request.
func ask[A any](ctx context.Context, c *appClient, path string, query url.Values) (answer A, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	err = c.send(ctx, http.MethodGet, path, query, nil, &answer)
	return answer, err
}

func act[A any](ctx context.Context, c *appClient, path string, body any) (answer A, err error) {
	ctx, cancel := context.WithTimeout(ctx, actTimeout)
	defer cancel()
	text, err := json.Marshal(body)
	if err != nil {
		return answer, fmt.Errorf("the request cannot be written as JSON: %w", err)
	}
	err = c.send(ctx, http.MethodPost, path, nil, text, &answer)
	return answer, err
}

// lostError means that no reply came: it is unknown whether the app did the action.
type lostError struct{ error }

func (e *lostError) Unwrap() error { return e.error }

// deniedError means that a retry does not help.
type deniedError struct{ error }

func (e *deniedError) Unwrap() error { return e.error }

// send makes one request and decodes the reply.
func (c *appClient) send(ctx context.Context, method, path string, query url.Values, body []byte, to any) error {
	u := c.base.JoinPath("ops", path)
	u.RawQuery = query.Encode()
	// With bytes.NewReader the request has a Content-Length. Without one the host does not forward the body.
	request, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("the app: %w", err)
	}
	request.Header.Set("X-Functions-Key", c.key)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(request)
	if err != nil {
		return &lostError{fmt.Errorf("the app did not answer: %w", err)}
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return &lostError{fmt.Errorf("the app's answer broke off: %w", err)}
	}
	if response.StatusCode != http.StatusOK {
		return appError(response.StatusCode, text)
	}
	if err := json.Unmarshal(text, to); err != nil {
		return fmt.Errorf("this build does not understand the app's answer: %w", err)
	}
	return nil
}

// appError makes the error of a reply: the app's own error, or the meaning of the host's status.
func appError(status int, body []byte) error {
	var answer struct {
		Error struct {
			Reason, Kind, Code string
		} `json:"error"`
	}
	if json.Unmarshal(body, &answer) == nil && answer.Error.Reason != "" {
		e := answer.Error
		if e.Kind == "request" {
			return &ops.RequestError{Refusal: ops.Refusal(e.Code), Message: e.Reason}
		}
		return fmt.Errorf("the app answers %d: %w", status, &fault.Error{Kind: fault.Kind(e.Kind), Code: e.Code, Reason: e.Reason})
	}
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return &deniedError{fmt.Errorf("the app answers %d: the key is not valid for the Ops function, or the app's network rules refuse this machine", status)}
	case http.StatusNotFound:
		return errors.New("the app answers 404: there is no Ops function at this address")
	case http.StatusBadGateway, http.StatusGatewayTimeout, http.StatusInternalServerError, http.StatusServiceUnavailable:
		return &lostError{fmt.Errorf("the app answers %d without a reason: its host did not complete the request", status)}
	}
	return fmt.Errorf("the app answers %d", status)
}
