package cosmosdb

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// response is a success, or 304.
type response struct {
	status int
	body   []byte
	etag   string
	// session is the session token, "range:-1#lsn".
	session string
	// charge is in request units: an estimate (charge.go).
	charge       float64
	continuation string
	items        int // rows in the body, -1 when it is not a list
}

func newResponse(status int, body []byte) *response {
	return &response{status: status, body: body, charge: 1, items: -1}
}

func sessionToken(r *pkRange) string { return fmt.Sprintf("%s:-1#%d", r.id(), r.lsn) }

// send writes an answer and counts it.
func (s *Server) send(w http.ResponseWriter, req *request, resp *response, apiErr *apiError) {
	h := w.Header()
	h.Set(headerActivityID, req.activityID)
	h.Set("X-Ms-Gatewayversion", "version=emulator")
	h.Set("Content-Type", "application/json")
	if req.contentPath != "" {
		h.Set("X-Ms-Content-Path", req.contentPath)
		h.Set("X-Ms-Alt-Content-Path", req.altContentPath)
	}
	if apiErr != nil {
		if apiErr.substatus != 0 {
			h.Set("X-Ms-Substatus", strconv.Itoa(apiErr.substatus))
		}
		h.Set("X-Ms-Request-Charge", "1")
		resp = newResponse(apiErr.status, apiErr.body(req.activityID))
	} else {
		h.Set("X-Ms-Request-Charge", strconv.FormatFloat(resp.charge, 'f', 2, 64))
		for name, value := range map[string]string{
			"Etag": resp.etag, "X-Ms-Session-Token": resp.session, headerContinuation: resp.continuation,
		} {
			if value != "" {
				h.Set(name, value)
			}
		}
		if resp.items >= 0 {
			h.Set("X-Ms-Item-Count", strconv.Itoa(resp.items))
		}
		if req.isWrite() && strings.EqualFold(req.header.Get("Prefer"), "return=minimal") {
			resp.body = nil
		}
	}
	s.stats.count(req.op, req.containerID, resp.status)
	if resp.status == http.StatusNoContent || resp.status == http.StatusNotModified {
		resp.body = nil
	}
	w.WriteHeader(resp.status)
	if _, err := w.Write(resp.body); err != nil { //nolint:gosec // JSON with its content type, never shown in a page
		return // the client has gone; what was done is done
	}
}

// sendFault answers what a fault rule wants instead of doing the request.
func (s *Server) sendFault(w http.ResponseWriter, req *request, f fault) {
	if f.rule.RetryAfterMS > 0 {
		w.Header().Set("X-Ms-Retry-After-Ms", strconv.Itoa(f.rule.RetryAfterMS))
	}
	s.send(w, req, nil, f.status)
}

// isWrite reports whether Prefer: return=minimal empties the answer's body.
func (req *request) isWrite() bool {
	switch req.op {
	case OpCreate, OpUpsert, OpReplace, OpPatch, OpDelete:
		return true
	default:
		return false
	}
}
