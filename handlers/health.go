package handlers

import (
	"context"
	"net/http"
	"time"
)

// HealthReport is what Health answers.
type HealthReport struct {
	// Status is "ready" when batches can be taken, otherwise "live": the process runs and Problems say what it lacks.
	Status string `json:"status"`
	// Version is the build's.
	Version string `json:"version"`
	// Mode is "shadow" when nothing is written, else "live".
	Mode string `json:"mode,omitempty"`
	// Since is when the status became what it is, UTC.
	Since time.Time `json:"since"`
	// Problems name settings and what is wrong with them, never values.
	Problems []string `json:"problems"`
	// Dependencies are cosmos and sql as the work itself saw them last; nothing is asked for this answer.
	Dependencies map[string]DependencyHealth `json:"dependencies"`
	// ForeignMessages is how many messages this process was brought that are not for it: a queue is named in the wrong place. Those of
	// another environment were put aside with the reason; those that came to a shadow were put off for the live app.
	ForeignMessages int `json:"foreign_messages,omitempty"`
	// Flow is what the breaker in front of SQL does, as this instance sees it.
	Flow FlowHealth `json:"flow"`
	// MassFailures is how many codes there are with which many documents began to fail. Others go on, so Status stays ready.
	MassFailures int `json:"mass_failures,omitempty"`
}

// FlowHealth is the flow: "running", "ramping up", "stopped" (nothing passes to SQL) or "paused" (an operator's wish).
type FlowHealth struct {
	State string `json:"state"`
	// Since is when it stopped, or when it ran again, UTC; zero while it has always been running.
	Since time.Time `json:"since,omitzero"`
	// Kind, Code and Reason are those of the failure that stopped it, until it runs again. An operator's words are not here:
	// Health is anonymous.
	Kind   string `json:"kind,omitempty"`
	Code   string `json:"code,omitempty"`
	Reason string `json:"reason,omitempty"`
	// NextProbe is when SQL is asked again, UTC.
	NextProbe time.Time `json:"next_probe,omitzero"`
	// Limit is the most documents of one request while the flow ramps up.
	Limit int `json:"limit,omitempty"`
	// CutOff says that this instance alone cannot reach SQL, Lost that it goes by its own copy of the control document.
	CutOff bool `json:"cut_off,omitempty"`
	Lost   bool `json:"lost,omitempty"`
}

// DependencyHealth is how a dependency answered last.
type DependencyHealth struct {
	// State is "ok", "failing", or "unknown" while nothing has been asked of it.
	State string `json:"state"`
	// Since is when State became what it is, UTC; zero when unknown.
	Since time.Time `json:"since,omitzero"`
	// Kind and Code say what failed.
	Kind string `json:"kind,omitempty"`
	Code string `json:"code,omitempty"`
}

// StatusReady is the status that answers 200.
const StatusReady = "ready"

// Health answers who asks how we are: functions/Health, anonymous. 200 when ready, otherwise 503. A dependency that fails
// while we are ready answers 200 and is named: replacing this instance would not heal it.
func Health(report func() HealthReport) Mounted {
	return Mounted{
		Name: "Health", Binding: "req", Payload: Object,
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
