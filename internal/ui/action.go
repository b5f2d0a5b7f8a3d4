package ui

import (
	"net/http"
	"strings"

	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
)

// action is what the page of an action asks before it acts.
type action struct {
	// About says what it is about, as it is now.
	About string
	// Does is what will happen, Not what will not.
	Does string
	Not  []string
	// To is the page that acts, by a POST; Back is where to go instead, with its name.
	To, Back, BackName string
	// Fields go with the form.
	Fields []field
	// Button names the action with its count. Danger marks one that stops the flow. Nothing says why there is nothing
	// to do.
	Button  string
	Danger  bool
	Nothing string
	// Why is the reason as it was typed before.
	Why string
	// Started is the dry run of a retry: which documents it takes.
	Started ops.Started
}

type field struct{ Name, Value string }

// Label is the name in words.
func (f field) Label() string {
	return strings.ToUpper(f.Name[:1]) + strings.ReplaceAll(f.Name[1:], "_", " ")
}

// deniedTo refuses an action's page to who may not act.
func deniedTo(p opsapi.Who) error {
	return &pageError{
		http.StatusForbidden, "this needs the role " + string(opsapi.Operator) + ", and yours is " + string(p.Role),
	}
}
