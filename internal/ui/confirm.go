package ui

import (
	"net/http"

	"sqlwriter/internal/opsapi"
)

// confirm is what an action's page asks before it acts.
type confirm struct {
	// To is the page that acts, by a POST; Back is where to go instead, with its name.
	To, Back, BackName string
	// Says is what will happen, Not what will not.
	Says string
	Not  []string
	// Fields go with the form.
	Fields []field
	// Button names the action with its count. Danger marks what cannot be undone. Nothing says why there is nothing to do.
	Button  string
	Danger  bool
	Nothing string
	// Why is the reason as it was typed before.
	Why string
}

type field struct{ Name, Value string }

// deniedTo refuses an action's page to who may not act.
func deniedTo(p opsapi.Who) error {
	return &pageError{http.StatusForbidden, "this needs the role " + string(opsapi.Operator) + ", and yours is " + string(p.Role)}
}
