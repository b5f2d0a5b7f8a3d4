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

// The environment variables of the app's address and key.
const (
	appVariable = "SQLWRITER_APP"
	keyVariable = "SQLWRITER_KEY" //nolint:gosec // a name
)

const (
	// askTimeout bounds a question, actTimeout an action: the app itself ends a reprocessing after 4 minutes.
	askTimeout = time.Minute
	actTimeout = 5 * time.Minute
	// maxAnswer is the longest answer that is read.
	maxAnswer = 16 << 20
)

// appClient asks an app by its Ops function. It implements operations.
type appClient struct {
	base *url.URL
	key  string
	http *http.Client
}

// newAppClient checks the address: the key is sent with every request, so it travels encrypted or not at all.
func newAppClient(address, key string) (*appClient, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || (u.Scheme != "https" && u.Scheme != "http") {
		return nil, errors.New("the app's address: expected https://NAME.azurewebsites.net, and the key apart from it")
	}
	if u.Scheme == "http" && !loopback(u.Hostname()) {
		return nil, errors.New("the app's address: the key is not sent over http:// to another machine: expected https://")
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = "/api"
	}
	return &appClient{base: u, key: key, http: &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the key goes nowhere else
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

// Reprocess implements operations.
func (c *appClient) Reprocess(ctx context.Context, r ops.ReprocessRequest) (ops.Reprocessed, error) {
	answer, err := act[ops.Reprocessed](ctx, c, "reprocess", r)
	var lost *lostError
	if errors.As(err, &lost) && !r.DryRun {
		err = fmt.Errorf("%w; the app may be at it all the same: see `run list`, and `run cancel`", err)
	}
	return answer, err
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

// ask makes a GET, act a POST.
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

// lostError says that no answer came: whether the app did it is not known.
type lostError struct{ error }

func (e *lostError) Unwrap() error { return e.error }

// deniedError says that asking again does not help.
type deniedError struct{ error }

func (e *deniedError) Unwrap() error { return e.error }

// send makes one request and reads its answer.
func (c *appClient) send(ctx context.Context, method, path string, query url.Values, body []byte, to any) error {
	u := c.base.JoinPath("ops", path)
	u.RawQuery = query.Encode()
	// a reader of bytes, whose length is known: the host hands no body on that has no Content-Length
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
		return fmt.Errorf("the app's answer is not what this build understands: %w", err)
	}
	return nil
}

// appError makes the error of an answer: the app's own words, or what the host means by its bare status.
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
		return &deniedError{fmt.Errorf("the app answers %d: the key is not one of the Ops function's, or the network is not let in", status)}
	case http.StatusNotFound:
		return errors.New("the app answers 404: there is no Ops function at this address")
	case http.StatusBadGateway, http.StatusGatewayTimeout, http.StatusInternalServerError, http.StatusServiceUnavailable:
		return &lostError{fmt.Errorf("the app answers %d without a reason: its host could not bring the request to an end", status)}
	}
	return fmt.Errorf("the app answers %d", status)
}
