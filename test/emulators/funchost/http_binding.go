package funchost

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// authLevel is the key that an HTTP function needs.
type authLevel int

const (
	authAnonymous authLevel = iota
	authFunction
	authAdmin
)

// httpTrigger is an httpTrigger binding, resolved.
type httpTrigger struct {
	route   route
	methods []string // upper case; empty = all
	auth    authLevel
}

func (x indexer) httpTrigger(functionName string, b binding) (*httpTrigger, error) {
	r := reader{binding: b, settings: x.settings}
	r.only("type name direction authlevel methods route")
	t := &httpTrigger{auth: authFunction} // the default (HttpTriggerAttribute)
	switch level := r.plain("authLevel", "function"); strings.ToLower(level) {
	case "anonymous":
		t.auth = authAnonymous
	case "function":
	case "admin":
		t.auth = authAdmin
	default:
		r.fail(fmt.Errorf("'authLevel' must be anonymous, function or admin, found %q", level))
	}
	if raw, ok := b["methods"]; ok {
		if err := json.Unmarshal(raw, &t.methods); err != nil {
			r.fail(fmt.Errorf("'methods' must be a list of texts, found %s", raw))
		}
		for i, method := range t.methods {
			t.methods[i] = strings.ToUpper(method)
		}
	}
	template := strings.Trim(r.text("route", functionName), "/")
	if err := r.problem(); err != nil {
		return nil, err
	}
	var err error
	t.route, err = parseRoute("api/" + template)
	return t, err
}

// accepts says whether the method may reach the function. The method is part of the route: another one finds nothing,
// so the answer is 404, not 405 (WebScriptHostHttpRoutesManager.cs, HttpMethodRouteConstraint).
func (t *httpTrigger) accepts(method string) bool {
	return len(t.methods) == 0 || slices.Contains(t.methods, method)
}

// route is a path template of literals, and perhaps {*name} at its end.
type route struct {
	literals []string
	rest     string // the name of the last segment
}

func parseRoute(template string) (route, error) {
	var out route
	parts := strings.Split(template, "/")
	if name, is := strings.CutPrefix(parts[len(parts)-1], "{*"); is {
		out.rest, parts = strings.TrimSuffix(name, "}"), parts[:len(parts)-1]
	}
	for _, part := range parts {
		if strings.ContainsAny(part, "{}") {
			return out, fmt.Errorf("'route' %q: of parameters this emulator has {*name} as the last segment", template)
		}
	}
	out.literals = parts
	return out, nil
}

// param is a parameter of a route; value is nil where the path has none.
type param struct {
	name  string
	value *string
}

// match returns the parameters of a path. Literals match without case.
func (r route) match(path string) ([]param, bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	n := len(r.literals)
	if len(parts) < n || len(parts) > n && r.rest == "" || !slices.EqualFunc(r.literals, parts[:n], strings.EqualFold) {
		return nil, false
	}
	params := []param{}
	if r.rest != "" {
		params = append(params, param{name: r.rest})
		if len(parts) > n {
			rest := strings.Join(parts[n:], "/")
			params[0].value = &rest
		}
	}
	return params, true
}

// compareRoutes orders routes as ASP.NET does: a literal segment before the rest of a path.
func compareRoutes(a, b route) int { return cmp.Compare(len(b.literals), len(a.literals)) }

// grant is the level that the request's key gives for a function, and the key's name; functionName "" is the host
// itself. The header x-functions-key comes before the query's code (AuthenticationLevelHandler.cs).
func (k Keys) grant(request *http.Request, functionName string) (authLevel, string) {
	key := request.Header.Get("x-functions-key")
	if key == "" {
		key = request.URL.Query().Get("code")
	}
	switch key {
	case "":
		return authAnonymous, ""
	case k.Master:
		return authAdmin, "master"
	case k.Host, k.Functions[functionName]:
		return authFunction, "default"
	}
	for name, value := range k.Named {
		if key == value {
			return authFunction, name
		}
	}
	return authAnonymous, ""
}

func (k Keys) allowed(request *http.Request, level authLevel, functionName string) bool {
	granted, _ := k.grant(request, functionName)
	return granted >= level
}
