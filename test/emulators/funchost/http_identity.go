package funchost

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// identity is a .NET ClaimsIdentity.
type identity struct {
	kind               string // authentication type; "" is nobody
	nameType, roleType string
	claims             []claim
}

type claim struct {
	Type  string `json:"typ"`
	Value string `json:"val"`
}

const (
	nameClaim = "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/name"
	roleClaim = "http://schemas.microsoft.com/ws/2008/06/identity/claims/role"
	keyClaims = "http://schemas.microsoft.com/2017/07/functions/claims/"
)

// identities are those of a request: the platform's sign-in, where it is on, then the key's, else nobody. The error is
// a header that is not base64; the host answers 500 (docs/facts.md F12).
func (h *Host) identities(r *http.Request, functionName string) ([]identity, error) {
	var out []identity
	if on, _ := strconv.ParseBool(h.options.Settings["WEBSITE_AUTH_ENABLED"]); on {
		who, err := principal(r.Header.Get("X-MS-CLIENT-PRINCIPAL"))
		if err != nil {
			return nil, err
		}
		out = append(out, who...)
	}
	if level, name := h.options.Keys.grant(r, functionName); level != authAnonymous {
		out = append(out, identity{kind: "WebJobsAuthLevel", nameType: nameClaim, roleType: roleClaim, claims: []claim{
			{keyClaims + "authlevel", map[authLevel]string{authFunction: "Function", authAdmin: "Admin"}[level]},
			{keyClaims + "invoke", "true"},
			{keyClaims + "keyid", name},
		}})
	}
	if out == nil {
		out = []identity{{nameType: nameClaim, roleType: roleClaim}}
	}
	return out, nil
}

// principal reads X-MS-CLIENT-PRINCIPAL. What is no JSON is nobody.
func principal(header string) ([]identity, error) {
	text, err := base64.StdEncoding.DecodeString(header)
	if err != nil {
		return nil, fmt.Errorf("X-MS-CLIENT-PRINCIPAL: %w", err)
	}
	var sent struct {
		Kind   string  `json:"auth_typ"`
		Name   string  `json:"name_typ"`
		Role   string  `json:"role_typ"`
		Claims []claim `json:"claims"`
	}
	if json.Unmarshal(text, &sent) != nil {
		return nil, nil //nolint:nilerr // the host takes such a header for nobody
	}
	return []identity{{kind: sent.Kind, nameType: sent.Name, roleType: sent.Role, claims: sent.Claims}}, nil
}

func appendIdentity(dst []byte, who identity) []byte {
	var kind, name *string
	if who.kind != "" {
		kind = &who.kind
	}
	for i := range who.claims {
		if name == nil && who.claims[i].Type == who.nameType {
			name = &who.claims[i].Value
		}
	}
	dst = appendOptional(append(dst, `{"AuthenticationType":`...), kind)
	dst = fmt.Appendf(dst, `,"IsAuthenticated":%t,"Actor":null,"BootstrapContext":null,"Claims":`, kind != nil)
	dst = appendList(dst, who.claims, func(dst []byte, c claim) []byte {
		dst = append(dst, `{"Issuer":"LOCAL AUTHORITY","OriginalIssuer":"LOCAL AUTHORITY","Properties":{},"Type":`...)
		dst = appendQuoted(append(appendQuoted(dst, c.Type), `,"Value":`...), c.Value)
		return append(dst, `,"ValueType":"http://www.w3.org/2001/XMLSchema#string"}`...)
	})
	dst = appendOptional(append(dst, `,"Label":null,"Name":`...), name)
	dst = appendQuoted(append(dst, `,"NameClaimType":`...), who.nameType)
	return append(appendQuoted(append(dst, `,"RoleClaimType":`...), who.roleType), '}')
}
