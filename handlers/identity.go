package handlers

import (
	"net/http"
	"strings"

	"sqlwriter/internal/opsapi"
)

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
	// operatorKeys begins the names of keys that act.
	operatorKeys = "operator"
)

// keyHolder takes the name of the function key for who asks. A key whose name begins with "operator" has that role. Any
// other one is a Reader, also those that nobody chose: default, master, and no name where the Core Tools ask for none.
// The host knows no roles of keys, and their names need no state of ours.
func keyHolder(r opsRequest) (opsapi.Who, error) {
	for i := len(r.Identities) - 1; i >= 0; i-- { // the host adds the key's last
		id := r.Identities[i]
		if id.AuthenticationType != keyAuthentication || !id.IsAuthenticated {
			continue
		}
		name, role := id.claim(keyIDClaim), opsapi.Reader
		if strings.HasPrefix(strings.ToLower(name), operatorKeys) {
			role = opsapi.Operator
		}
		return opsapi.Who{Name: strings.TrimSpace("function key " + name), Role: role}, nil
	}
	return opsapi.Who{}, refused(http.StatusUnauthorized, "a function key is required")
}

// Claims of a person or an app that signed in with Microsoft Entra. The platform renames some; both names occur.
const (
	entraAuthentication = "aad"
	wsClaims            = "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/"
	msClaims            = "http://schemas.microsoft.com/identity/claims/"
	wsRole              = "http://schemas.microsoft.com/ws/2008/06/identity/claims/role"
)

// signedIn takes the platform's sign-in for who asks: the name, and the id that nobody else ever gets. The role is the
// app role (Reader, Operator) that Entra assigned.
func signedIn(r opsRequest) (opsapi.Who, error) {
	for _, id := range r.Identities {
		if id.AuthenticationType != entraAuthentication || !id.IsAuthenticated {
			continue
		}
		who := opsapi.Who{
			Name: id.claim("preferred_username", wsClaims+"emailaddress", wsClaims+"upn", "upn",
				"name", "azp", "appid"),
		}
		if object := id.claim(msClaims+"objectidentifier", "oid"); object != "" {
			who.Name = strings.TrimSpace(who.Name + " (" + object + ")")
		}
		for _, c := range id.Claims {
			role := opsapi.Role(c.Value)
			isRole := c.Type == "roles" || c.Type == "role" || c.Type == wsRole || c.Type == id.RoleClaimType
			if isRole && (role == opsapi.Operator || role == opsapi.Reader && who.Role == "") {
				who.Role = role
			}
		}
		switch {
		case who.Name == "":
			return opsapi.Who{}, refused(http.StatusForbidden,
				"the sign-in names nobody: the token has neither a name nor an object id")
		case who.Role == "":
			return opsapi.Who{}, refused(http.StatusForbidden, who.Name+
				" has no role in this app: an administrator assigns Reader or Operator (docs/settings.md, Sign-in)")
		}
		return who, nil
	}
	return opsapi.Who{}, refused(http.StatusUnauthorized,
		"sign in first: with a browser at /.auth/login/aad, or with a token in the header Authorization")
}
