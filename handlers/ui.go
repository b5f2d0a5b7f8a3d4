package handlers

import (
	"context"
	"net/http"

	"sqlwriter/internal/ops"
)

// UI mounts functions/Ui, the operators' API behind the platform's sign-in: the host wants a key at Ops whoever signed in
// (docs/facts.md F12). signIn says that the platform's authentication is on; without it every call is refused. open is that
// of Ops.
func UI(open func(context.Context) (*ops.Ops, error), signIn bool) Mounted {
	who := func(r opsRequest) (caller, error) {
		if !signIn {
			return caller{}, &httpError{http.StatusForbidden, "the platform's authentication is off, so nobody can sign in: " +
				"turn it on for the function app (docs/settings.md, Sign-in); WEBSITE_AUTH_ENABLED is then true", nil}
		}
		return signedIn(r)
	}
	return operators{name: "Ui", route: "/ui/", prefix: "api/v1", who: who, guard: sameOrigin, open: open}.mounted()
}

// sameOrigin refuses an action that another site's page makes a signed-in browser send. Browsers say in Sec-Fetch-Site where
// a request comes from. A request without it is no browser's if it carries a token: a page cannot add that header for
// another site.
func sameOrigin(r opsRequest) error {
	switch site := r.header("Sec-Fetch-Site"); {
	case site == "same-origin", site == "" && r.header("Authorization") != "":
		return nil
	}
	return &httpError{http.StatusForbidden, "an action from another site: expected Sec-Fetch-Site: same-origin, or a token in the header Authorization", nil}
}
