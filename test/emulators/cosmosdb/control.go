package cosmosdb

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The control endpoint lets another process do what the Go methods do. It needs no key, and answers only
// to loopback addresses.
//
//	GET    /_emulator/stats                     counters ([]Stat)
//	DELETE /_emulator/stats                     ResetStats
//	GET    /_emulator/faults                    rules ([]RuleState)
//	POST   /_emulator/faults                    AddFault, body Rule; answers {"id": ...}
//	DELETE /_emulator/faults[/{id}]             ClearFaults or RemoveFault
//	POST   /_emulator/faults/{id}/release       Release; answers {"released": n}
//	GET    /_emulator/faults/{id}/held?n=1&timeout_ms=10000   WaitHeld; 200, or 408 when the time is over
//	POST   /_emulator/split                     Split, body {"database", "container", "range"};
//	                                            answers {"children": [ids]}
const controlPrefix = "/_emulator/"

func isControl(path string) bool { return strings.HasPrefix(path, controlPrefix) }

func (s *Server) serveControl(w http.ResponseWriter, r *http.Request) {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
		controlAnswer(w, http.StatusForbidden,
			map[string]string{"error": "the control endpoint answers to loopback only"})
		return
	}
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, controlPrefix), "/")
	id, action := "", ""
	if len(parts) > 1 {
		id = parts[1]
	}
	if len(parts) > 2 {
		action = parts[2]
	}
	switch r.Method + " " + parts[0] + " " + action {
	case "GET stats ":
		controlAnswer(w, http.StatusOK, s.Stats())
	case "DELETE stats ":
		s.ResetStats()
		controlAnswer(w, http.StatusOK, struct{}{})
	case "GET faults ":
		controlAnswer(w, http.StatusOK, s.Faults())
	case "POST faults ":
		s.controlAdd(w, r)
	case "DELETE faults ":
		if id == "" {
			s.ClearFaults()
		} else {
			s.RemoveFault(id)
		}
		controlAnswer(w, http.StatusOK, struct{}{})
	case "POST faults release":
		controlAnswer(w, http.StatusOK, map[string]int{"released": s.Release(id)})
	case "GET faults held":
		s.controlHeld(w, r, id)
	case "POST split ":
		s.controlSplit(w, r)
	default:
		controlAnswer(w, http.StatusNotFound, map[string]string{"error": "no such control request"})
	}
}

func (s *Server) controlAdd(w http.ResponseWriter, r *http.Request) {
	var rule Rule
	in := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16))
	in.DisallowUnknownFields()
	err := in.Decode(&rule)
	if err == nil {
		rule.ID, err = s.AddFault(rule)
	}
	if err != nil {
		controlAnswer(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
		return
	}
	controlAnswer(w, http.StatusCreated, map[string]string{"id": rule.ID})
}

func (s *Server) controlSplit(w http.ResponseWriter, r *http.Request) {
	var what struct{ Database, Container, Range string }
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&what)
	var children []string
	if err == nil {
		children, err = s.Split(what.Database, what.Container, what.Range)
	}
	if err != nil {
		controlAnswer(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
		return
	}
	controlAnswer(w, http.StatusOK, map[string][]string{"children": children})
}

func (s *Server) controlHeld(w http.ResponseWriter, r *http.Request, id string) {
	number := func(name string, otherwise int) int {
		if n, err := strconv.Atoi(r.URL.Query().Get(name)); err == nil && n > 0 {
			return n
		}
		return otherwise
	}
	ctx, cancel := context.WithTimeout(r.Context(), time.Duration(number("timeout_ms", 10_000))*time.Millisecond)
	defer cancel()
	if err := s.WaitHeld(ctx, id, number("n", 1)); err != nil {
		controlAnswer(w, http.StatusRequestTimeout, map[string]string{"error": err.Error()})
		return
	}
	controlAnswer(w, http.StatusOK, struct{}{})
}

func controlAnswer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		return // the client has gone
	}
}
