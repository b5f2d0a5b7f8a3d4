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

// answerOf is an error's status and its reason in our own words.
func answerOf(err error) (status int, reason string) {
	var page *pageError
	var request *ops.RequestError
	var denied *opsapi.DeniedError
	switch {
	case errors.As(err, &page):
		return page.status, page.reason
	case errors.As(err, &request):
		return opsapi.StatusOf(request.Refusal), request.Message
	case errors.As(err, &denied):
		return http.StatusForbidden, denied.Error()
	}
	status, reason = http.StatusInternalServerError, "an unexpected error"
	if e := fault.As(err); e != nil {
		reason = e.Reason
	}
	switch {
	case fault.KindOf(err) == fault.Contention:
		status = http.StatusConflict
	case fault.IsDependency(err):
		status = http.StatusServiceUnavailable
	}
	return status, reason
}

// reasonOf is an error in our own words.
func reasonOf(err error) string {
	_, reason := answerOf(err)
	return reason
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
		return "It is not known whether this was done: " + reasonOf(err) +
			". Look at the last actions in the overview before you try again."
	}
	return "Nothing was done: " + reasonOf(err)
}

// problem is the page of an error.
func (v *visit) problem(err error) Answer {
	status, reason := answerOf(err)
	t := trouble{Says: reason, Away: fault.IsDependency(err) && v.failed == nil}
	if fault.IsDependency(err) {
		t.Code = fault.CodeOf(err)
	}
	if v.failed != nil {
		t.Says, t.Why = notDone(v.failed), v.Form.Get("why")
	}
	a := v.render("problem", v.page.nav, content{Title: http.StatusText(status), Main: t, Status: status, Live: t.Away})
	a.Err = err
	return a
}
