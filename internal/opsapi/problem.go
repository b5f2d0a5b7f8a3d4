package opsapi

import (
	"net/http"

	"sqlwriter/internal/ops"
)

// ProblemType is the media type of an error's body (RFC 9457).
const ProblemType = "application/problem+json"

// Problem is the body of every answer other than 200 (RFC 9457).
type Problem struct {
	// Type is always about:blank: Kind and Code tell problems apart.
	Type string `json:"type"`
	// Title is the text of Status.
	Title  string `json:"title"`
	Status int    `json:"status"`
	// Detail is the reason, for people.
	Detail string `json:"detail"`
	// Kind and Code are those of internal/fault; kind "request" means that the request was refused (ops.Refusal is its
	// code).
	Kind string `json:"kind,omitempty"`
	Code string `json:"code,omitempty"`
	// Known are the paths or methods that exist instead.
	Known []string `json:"known,omitempty"`
}

// StatusOf is the status of a refused request.
func StatusOf(r ops.Refusal) int {
	switch r {
	case ops.NotFound:
		return http.StatusNotFound
	case ops.Conflict:
		return http.StatusConflict
	case ops.Usage:
	}
	return http.StatusBadRequest
}

// KindRequest is the kind of a refused request.
const KindRequest = "request"
