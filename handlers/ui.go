package handlers

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"sqlwriter/internal/events"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
	"sqlwriter/internal/ui"
)

// UIAccess says who may use the operators' pages, and how an action shows that its sender meant it.
type UIAccess struct {
	// SignIn says that the platform's authentication is on. Without it every request is refused, unless Open.
	SignIn bool
	// Open makes everybody an operator who asks by a loopback address. It is for a developer's machine.
	Open bool
	// Origin is the pages' origin as browsers see it; may be empty.
	Origin string
}

// UI mounts functions/Ui: the operators' pages, and their API behind the platform's sign-in, because the host wants a
// key at Ops whoever signed in (docs/facts.md F12). open is that of Ops.
func UI(open func(context.Context) (*ops.Ops, error), site *ui.Site, access UIAccess) Mounted {
	api := operators{
		name: "Ui", route: "/ui/", prefix: apiPrefix, longest: maxForm, who: access.who, guard: access.sameOrigin,
		open: open,
	}
	p := pages{api: api, site: site, access: access, open: open}
	m := api.mounted()
	m.Run = p.run
	return m
}

// BelievesForged asks UI for an answer to everybody who signed in, with forged headers of the platform and without an
// identity of the host's.
func BelievesForged(ctx context.Context, ui Mounted) (bool, error) {
	const principal = `{"auth_typ":"aad","claims":[{"typ":"name","val":"nobody"},{"typ":"roles","val":"Operator"}]}`
	const path = apiPrefix + "/openapi.json"
	reply, err := ui.Run(ctx, Invocation{Object: fmt.Appendf(nil, `{"Url":"https://forged.invalid/api/ui/%s","Method":"GET",
		"Params":{"path":%[1]q},"Headers":{"X-MS-CLIENT-PRINCIPAL":[%q],"X-MS-CLIENT-PRINCIPAL-NAME":["nobody"],
		"X-MS-CLIENT-PRINCIPAL-IDP":["aad"]}}`, path, base64.StdEncoding.EncodeToString([]byte(principal)))})
	return err == nil && reply.HTTP.Status == http.StatusOK, err
}

const apiPrefix = "api/v1"

// signInPath is where the platform signs people in.
const signInPath = "/.auth/login/aad"

// pages serves the site, and hands requests for the API on.
type pages struct {
	api    operators
	site   *ui.Site
	access UIAccess
	open   func(context.Context) (*ops.Ops, error)
}

func (p pages) run(ctx context.Context, in Invocation) (Reply, error) {
	r, root, err := readPage(in.Object)
	if err != nil {
		return Reply{}, err
	}
	if r.path == apiPrefix || strings.HasPrefix(r.path, apiPrefix+"/") {
		return p.api.mounted().Run(ctx, in)
	}
	page := ui.Request{Method: strings.ToUpper(r.Method), Path: r.path, Query: url.Values{}, Root: root}
	if page.Method == http.MethodHead {
		page.Method = http.MethodGet
	}
	for name, value := range r.Query {
		// a key does not open the pages, and must not stand in a link
		if !strings.EqualFold(name, opsapi.KeyParameter) {
			page.Query.Set(name, value)
		}
	}
	a := p.answer(ctx, r, page)
	fields := events.Fields{Method: methodOf(r.Method), Call: p.site.Known(r.path), HTTPStatus: a.Status}
	switch {
	case a.Err == nil:
	case a.Status < http.StatusInternalServerError:
		fields.Kind = opsapi.KindRequest // refused; nothing failed
	default:
		fields.Kind, fields.Code = fault.KindOf(a.Err), fault.CodeOf(a.Err)
	}
	return Reply{HTTP: &HTTPReply{Status: a.Status, Headers: a.Headers, Body: Text(a.Body)}, Fields: fields}, nil
}

// answer answers a request for a page.
func (p pages) answer(ctx context.Context, r opsRequest, page ui.Request) ui.Answer {
	if strings.HasPrefix(page.Path, "assets/") { // the same for everybody
		return p.site.Serve(ctx, nil, page)
	}
	who, err := p.access.who(r)
	if err != nil {
		refused := problem(err)
		if refused.Status == http.StatusUnauthorized && page.Method == http.MethodGet && isNavigation(r) {
			back := page.Root + page.Path
			if len(page.Query) > 0 {
				back += "?" + page.Query.Encode()
			}
			return ui.Redirect(http.StatusFound, signInPath+"?post_login_redirect_uri="+url.QueryEscape(back))
		}
		return p.site.Refuse(page, refused.Status, refused.Detail)
	}
	page.Who = who
	if page.Method == http.MethodPost {
		if err := p.access.sameOrigin(r); err != nil {
			return p.site.Refuse(page, http.StatusForbidden, err.Error())
		}
		var refusal string
		if page.Form, refusal = r.form(); refusal != "" {
			return p.site.Refuse(page, http.StatusBadRequest, refusal)
		}
	}
	o, err := p.open(ctx)
	if err != nil {
		return p.site.Problem(page, err)
	}
	return p.site.Serve(ctx, opsapi.Direct(o, who), page)
}

// readPage reads a request, and the path of the overview as the browser sees it. The address may carry an inner host,
// but has the path.
func readPage(object json.RawMessage) (r opsRequest, root string, err error) {
	if err := json.Unmarshal(object, &r); err != nil {
		return r, "", &PayloadError{"Data.req", "an HTTP request", "something else"}
	}
	const route = "/ui"
	root = "/api" + route
	if u, err := url.Parse(r.URL); err == nil {
		if i := strings.Index(strings.ToLower(u.Path)+"/", route+"/"); i >= 0 {
			root = u.Path[:i+len(route)]
			r.path = u.Path[i+len(route):]
		}
	}
	if path := r.Params["path"]; path != nil {
		r.path = *path
	}
	r.path = strings.ToLower(strings.Trim(r.path, "/"))
	return r, root + "/", nil
}

// maxForm bounds the body of an action: a reason, and at most some hundred names.
const maxForm = 64 << 10

// form reads the body of an action. A refusal says what is wrong.
func (r opsRequest) form() (form url.Values, refusal string) {
	media, _, _ := strings.Cut(r.header("Content-Type"), ";")
	var body string
	switch {
	case !strings.EqualFold(strings.TrimSpace(media), "application/x-www-form-urlencoded"):
		return nil, "the body: expected a form, found another Content-Type"
	case len(r.Body) > maxForm:
		return nil, "the body: expected a form of at most 64 KiB, found more"
	case len(r.Body) > 0 && json.Unmarshal(r.Body, &body) != nil:
		return nil, "the body: expected a form, found something else"
	}
	form, err := url.ParseQuery(body)
	if err != nil {
		return nil, "the body: expected a form, found text that is none"
	}
	return form, ""
}

// isNavigation reports whether a browser shows the answer. A script's request cannot follow the way to the sign-in.
func isNavigation(r opsRequest) bool {
	to := r.header("Sec-Fetch-Dest")
	return to == "" || to == "document"
}

// who returns who asks. Errors: *httpError.
func (a UIAccess) who(r opsRequest) (opsapi.Who, error) {
	switch {
	case a.Open && !isLoopback(r.URL):
		return opsapi.Who{}, refused(http.StatusForbidden,
			"UI_AUTH is none, so the pages answer at a loopback address only, such as http://127.0.0.1:7071/api/ui/")
	case a.Open:
		return opsapi.Who{Name: "a developer on this machine", Role: opsapi.Operator}, nil
	case !a.SignIn:
		return opsapi.Who{}, refused(http.StatusForbidden, "the platform's authentication is off, so nobody can sign in: "+
			"turn it on for the function app and let requests without a sign-in pass (docs/settings.md, Sign-in); "+
			"WEBSITE_AUTH_ENABLED is then true. On a developer's machine set UI_AUTH to none")
	}
	return signedIn(r)
}

// isLoopback reports whether an address names this machine. A page of another site that points its name here does not.
func isLoopback(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	host := u.Hostname()
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || (ip != nil && ip.IsLoopback())
}

// sameOrigin refuses an action that another site's page makes a signed-in browser send. Browsers say in Sec-Fetch-Site
// where a request comes from, and old ones in Origin. The address may carry an inner host, so a setting names ours. A
// request with neither is no browser's if it carries a token: a page cannot add that header for another site.
func (a UIAccess) sameOrigin(r opsRequest) error {
	site, origin := r.header("Sec-Fetch-Site"), r.header("Origin")
	switch {
	case site == "same-origin",
		a.Origin != "" && origin == a.Origin,
		site == "" && origin == "" && r.header("Authorization") != "":
		return nil
	}
	return refused(http.StatusForbidden,
		"an action from another site: expected Sec-Fetch-Site: same-origin, the Origin that UI_ORIGIN names, or a token in the header Authorization")
}
