package handlers

import (
	"context"
	"net/http"
	"time"

	"sqlwriter/internal/events"
)

// HealthReport is the body of Health.
type HealthReport struct {
	// Status is "ready" when batches can be processed, else "live": the process runs, and Problems has the reasons.
	Status  string `json:"status"`
	Version string `json:"version"`
	// Mode is "shadow" when nothing is written, else "live".
	Mode string `json:"mode,omitempty"`
	// PartitionKey has the paths of the results' partition key, as the container's definition has them; empty while
	// that is unknown.
	PartitionKey string `json:"partition_key,omitempty"`
	// Mapping is the mapping in use: the name of its file, or that it is the default, and its version.
	Mapping string `json:"mapping,omitempty"`
	// Since is when Status last changed, UTC.
	Since time.Time `json:"since"`
	// Problems name settings and what is wrong with them, never their values, and what an operator must look at
	// although batches are processed.
	Problems []string `json:"problems"`
	// Dependencies are cosmos, sql, blob and servicebus as the app's instances last saw them; Health sends no request
	// to them.
	Dependencies map[string]DependencyHealth `json:"dependencies"`
	// ForeignMessages counts messages that this process received but that are for another app: a queue's name is wrong.
	// Messages of another environment were dead-lettered with the reason. Messages to a shadow were deferred for the
	// live app.
	ForeignMessages int `json:"foreign_messages,omitempty"`
	// Flow is the state of the breaker in front of SQL, as this instance sees it.
	Flow FlowHealth `json:"flow"`
}

// FlowHealth is the flow: "running", "ramping up", "stopped" (no request passes to SQL) or "paused" (by an operator).
type FlowHealth struct {
	State string `json:"state"`
	// Since is when it stopped or started again, UTC; zero if it has never stopped.
	Since time.Time `json:"since,omitzero"`
	// Kind, Code and Reason are those of the failure that stopped it, until it runs again. An operator's reason is not
	// here, because Health is anonymous.
	Kind   string `json:"kind,omitempty"`
	Code   string `json:"code,omitempty"`
	Reason string `json:"reason,omitempty"`
	// NextProbe is the time of the next request to SQL, UTC.
	NextProbe time.Time `json:"next_probe,omitzero"`
	// Limit is the most documents of one request while the flow ramps up.
	Limit int `json:"limit,omitempty"`
	// CutOff means that only this instance cannot reach SQL. Lost means that the control document is not available.
	CutOff bool `json:"cut_off,omitempty"`
	Lost   bool `json:"lost,omitempty"`
}

// DependencyHealth is the last result of a dependency: what all instances noted, or this instance's own failure.
type DependencyHealth struct {
	// State is "ok", "failing", or "unknown" before the first request.
	State string `json:"state"`
	// Since is the first answer of this State, UTC; zero when unknown.
	Since time.Time `json:"since,omitzero"`
	Kind  string    `json:"kind,omitempty"`
	Code  string    `json:"code,omitempty"`
}

// StatusReady is the status that answers 200.
const StatusReady = "ready"

// Health mounts functions/Health, which is anonymous. It answers 200 when ready, otherwise 503. A failing dependency
// does not change a ready status, because a new instance would not help; the body names it.
func Health(report func() HealthReport) Mounted {
	return Mounted{
		Name: "Health", Binding: "req", Payload: Object, MaxBody: postOf(0), Event: events.HealthAnswered,
		Run: func(context.Context, Invocation) (Reply, error) {
			h := report()
			status := http.StatusServiceUnavailable
			if h.Status == StatusReady {
				status = http.StatusOK
			}
			return Reply{HTTP: &HTTPReply{Status: status, Body: h}}, nil
		},
	}
}
