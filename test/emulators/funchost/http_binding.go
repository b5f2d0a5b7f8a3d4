package funchost

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
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
	if r.errs != nil {
		return nil, r.errs[0]
	}
	first, _, _ := strings.Cut(joinRoute(x.host.http.routePrefix, template), "/")
	if strings.EqualFold(first, "admin") || strings.EqualFold(first, "runtime") {
		return nil, fmt.Errorf("the specified route conflicts with one or more built in routes: %q", template)
	}
	var err error
	t.route, err = parseRoute(joinRoute(x.host.http.routePrefix, template))
	return t, err
}

func joinRoute(prefix, template string) string {
	return strings.Trim(prefix+"/"+template, "/")
}

// accepts says whether the method may reach the function. The method is part of the route: another one finds nothing,
// so the answer is 404, not 405 (WebScriptHostHttpRoutesManager.cs, HttpMethodRouteConstraint).
func (t *httpTrigger) accepts(method string) bool {
	return len(t.methods) == 0 || slices.Contains(t.methods, method)
}

// route is a path template: literals, {name}, {name?}, {name:constraint}, {*name}.
type route []segment

type segment struct {
	literal    string // lower case; "" for a parameter
	name       string
	optional   bool
	catchAll   bool
	constraint string
}

func parseRoute(template string) (route, error) {
	var out route
	parts := strings.Split(template, "/")
	for i, part := range parts {
		if !strings.ContainsAny(part, "{}") {
			out = append(out, segment{literal: strings.ToLower(part)})
			continue
		}
		m := routeParameter.FindStringSubmatch(part)
		if m == nil {
			return nil,
				fmt.Errorf(
					"'route' %q: %q is not a parameter this emulator knows ({name}, {name?}, {name:int}, {*name})",
					template, part)
		}
		s := segment{name: m[2], catchAll: m[1] == "*", constraint: m[4], optional: m[5] == "?"}
		if (s.catchAll || s.optional) && i != len(parts)-1 {
			return nil, fmt.Errorf("'route' %q: %q must be the last segment", template, part)
		}
		if s.constraint != "" && constraintPattern(s.constraint) == nil {
			return nil,
				fmt.Errorf(
					"'route' %q: constraint %q is not one this emulator knows (int, long, guid, bool, alpha)", template,
					s.constraint)
		}
		out = append(out, s)
	}
	return out, nil
}

var routeParameter = regexp.MustCompile(`^\{(\*?)([A-Za-z_][A-Za-z0-9_]*)(:([a-z]+))?(\??)\}$`) //nolint:gochecknoglobals // a compiled constant

func constraintPattern(name string) *regexp.Regexp {
	switch name {
	case "int", "long":
		return regexp.MustCompile(`^-?\d+$`)
	case "guid":
		return regexp.MustCompile(`^(?i)[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$`)
	case "bool":
		return regexp.MustCompile(`^(?i)(true|false)$`)
	case "alpha":
		return regexp.MustCompile(`^(?i)[a-z]*$`)
	default:
		return nil
	}
}

// param is a parameter of a route; value is nil where the path has none.
type param struct {
	name  string
	value *string
}

// match returns the parameters of a path in the route's order. Literals match without case.
func (r route) match(path string) ([]param, bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if parts[0] == "" {
		parts = nil
	}
	params := []param{}
	for i, s := range r {
		switch {
		case s.catchAll:
			var value *string
			if i < len(parts) {
				rest := strings.Join(parts[i:], "/")
				value = &rest
			}
			return append(params, param{s.name, value}), true
		case i >= len(parts):
			if !s.optional {
				return nil, false
			}
			params = append(params, param{s.name, nil})
		case s.literal != "":
			if !strings.EqualFold(s.literal, parts[i]) {
				return nil, false
			}
		default:
			if s.constraint != "" && !constraintPattern(s.constraint).MatchString(parts[i]) {
				return nil, false
			}
			params = append(params, param{s.name, &parts[i]})
		}
	}
	return params, len(parts) <= len(r)
}

// compareRoutes orders routes as ASP.NET does: the more certain a segment, the earlier.
func compareRoutes(a, b route) int {
	return slices.CompareFunc(a, b, func(x, y segment) int { return cmp.Compare(x.rank(), y.rank()) })
}

func (s segment) rank() int {
	switch {
	case s.literal != "":
		return 0
	case s.catchAll:
		return 3
	case s.constraint != "":
		return 1
	default:
		return 2
	}
}

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
