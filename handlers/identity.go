package handlers

import (
	"net/http"
	"strings"

	"sqlwriter/internal/opsapi"
)

// caller is who asks, and what they may do.
type caller struct {
	// name stands in the audit log.
	name string
	role opsapi.Role
}

// identity is a ClaimsIdentity of the host (docs/facts.md F12).
type identity struct {
	AuthenticationType string
	IsAuthenticated    bool
	RoleClaimType      string
	Claims             []struct{ Type, Value string }
}

// claim returns the value of the first claim of one of the types; the earlier type wins.
func (i identity) claim(types ...string) string {
	for _, wanted := range types {
		for _, c := range i.Claims {
			if c.Type == wanted && c.Value != "" {
				return c.Value
			}
		}
	}
	return ""
}

const (
	// keyAuthentication is the authentication type of a function key.
	keyAuthentication = "WebJobsAuthLevel"
	keyIDClaim        = "http://schemas.microsoft.com/2017/07/functions/claims/keyid"
	// readerKeys begins the names of keys that only read.
	readerKeys = "reader"
)

// keyHolder takes the name of the function key for who asks. A key whose name begins with "reader" has the role Reader, any
// other one Operator: the host knows no roles of keys, and their names need no state of ours.
func keyHolder(r opsRequest) (caller, error) {
	for i := len(r.Identities) - 1; i >= 0; i-- { // the host adds the key's last
		id := r.Identities[i]
		if id.AuthenticationType != keyAuthentication || !id.IsAuthenticated {
			continue
		}
		name, role := id.claim(keyIDClaim), opsapi.Operator
		if strings.HasPrefix(strings.ToLower(name), readerKeys) {
			role = opsapi.Reader
		}
		return caller{strings.TrimSpace("function key " + name), role}, nil
	}
	return caller{}, &httpError{http.StatusUnauthorized, "a function key is required", nil}
}
