package cosmosdb

import (
	"encoding/json"
	"net"
	"net/http"
	"strings"
)

// The control endpoint lets another process do what the Go methods do. It needs no key, and answers only
// to loopback addresses.
//
//	GET    /_emulator/stats   counters ([]Stat)
//	DELETE /_emulator/stats   ResetStats
//	POST   /_emulator/split   Split, body {"database", "container", "range"}; answers {"children": [ids]}
const controlPrefix = "/_emulator/"

func isControl(path string) bool { return strings.HasPrefix(path, controlPrefix) }

func (s *Server) serveControl(w http.ResponseWriter, r *http.Request) {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
		controlAnswer(w, http.StatusForbidden,
			map[string]string{"error": "the control endpoint answers to loopback only"})
		return
	}
	switch r.Method + " " + strings.TrimPrefix(r.URL.Path, controlPrefix) {
	case "GET stats":
		controlAnswer(w, http.StatusOK, s.Stats())
	case "DELETE stats":
		s.ResetStats()
		controlAnswer(w, http.StatusOK, struct{}{})
	case "POST split":
		s.controlSplit(w, r)
	default:
		controlAnswer(w, http.StatusNotFound, map[string]string{"error": "no such control request"})
	}
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

func controlAnswer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		return // the client has gone
	}
}
