package ui

import (
	"errors"
	"net/http"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
)

// pageError is an error of the site itself.
type pageError struct {
	status int
	reason string
}

func (e *pageError) Error() string { return e.reason }

func notFound(reason string) error { return &pageError{http.StatusNotFound, reason} }

// usage is an error of what somebody typed.
func usage(reason string) error { return &pageError{http.StatusBadRequest, reason} }

// statusOf is the status of an error's answer.
func statusOf(err error) int {
	var page *pageError
	var request *ops.RequestError
	var denied *opsapi.DeniedError
	switch {
	case errors.As(err, &page):
		return page.status
	case errors.As(err, &request):
		return map[ops.Refusal]int{ops.Usage: http.StatusBadRequest, ops.NotFound: http.StatusNotFound, ops.Conflict: http.StatusConflict}[request.Refusal]
	case errors.As(err, &denied):
		return http.StatusForbidden
	case fault.KindOf(err) == fault.Contention:
		return http.StatusConflict
	case fault.IsDependency(err):
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// reasonOf is an error in our own words.
func reasonOf(err error) string {
	var page *pageError
	var request *ops.RequestError
	var denied *opsapi.DeniedError
	switch {
	case errors.As(err, &page):
		return page.reason
	case errors.As(err, &request):
		return request.Message
	case errors.As(err, &denied):
		return denied.Error()
	}
	if e := fault.As(err); e != nil {
		return e.Reason
	}
	return "an unexpected error"
}

// trouble is what the problem page shows.
type trouble struct {
	Says string
	// Code is that of a dependency's error; empty otherwise.
	Code string
	// Away: a dependency does not answer, and the page may come back by itself.
	Away bool
	// Why is the reason that was typed for an action that failed.
	Why string
}

// notDone says that an action failed. What was asked of a dependency that did not answer may have been done.
func notDone(err error) string {
	if fault.IsDependency(err) {
		return "It is not known whether this was done: " + reasonOf(err) + ". Look at the last actions in the overview before you try again."
	}
	return "Nothing was done: " + reasonOf(err)
}

// problem is the page of an error.
func (v *visit) problem(err error) Answer {
	t := trouble{Says: reasonOf(err), Away: fault.IsDependency(err) && v.failed == nil}
	if fault.IsDependency(err) {
		t.Code = fault.CodeOf(err)
	}
	if v.failed != nil {
		t.Says, t.Why = notDone(v.failed), v.Form.Get("why")
	}
	a := v.render("problem", v.page.nav, content{Title: http.StatusText(statusOf(err)), Main: t, Status: statusOf(err), Live: t.Away})
	a.Err = err
	return a
}
