package ui

import (
	"bytes"
	"cmp"
	"context"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"sqlwriter/internal/explain"
	"sqlwriter/internal/opsapi"
)

// Options configure a Site.
type Options struct {
	// SysName is the environment, Mode how the app writes ("live", "shadow"), Version the build.
	SysName, Mode, Version string
	// Codes explains codes.
	Codes explain.Table
	// Location is the zone of times that are typed without one; UTC by default.
	Location *time.Location
	// Now is the clock.
	Now func() time.Time
}

// Site serves the pages. It is safe for concurrent use.
type Site struct {
	o     Options
	pages []page
	// templates are parsed by the first request: the process must listen at once.
	templates func() map[string]*template.Template
	assets    map[string]asset
	style     string
	script    string
}

// New makes a Site.
func New(o Options) *Site {
	if o.Location == nil {
		o.Location = time.UTC
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Site{o: o, pages: pages()}
	s.loadAssets()
	s.templates = sync.OnceValue(s.parse)
	return s
}

// Request is a request for a page.
type Request struct {
	// Method is GET or POST.
	Method string
	// Path is below the site's root, without a slash at its ends; "" is the overview.
	Path string
	// Query are the parameters, Form those of a POST's body.
	Query, Form url.Values
	Who         opsapi.Who
	// Root is the path of the overview as the browser sees it, with a slash at its end: "/api/ui/".
	Root string
}

// Answer is what the browser gets. Its body is always text.
type Answer struct {
	Status  int
	Headers map[string]string
	Body    string
	// Err is why the page could not be shown; nil otherwise.
	Err error
}

// Redirect sends the browser to an address.
func Redirect(status int, to string) Answer {
	h := headers("text/plain; charset=utf-8")
	h["Location"] = to
	return Answer{Status: status, Headers: h}
}

// page is a row of the table of pages.
type page struct {
	// path is below the root; "" is the overview.
	path string
	// nav is the entry of the navigation that the page belongs to.
	nav string
	// show makes the page.
	show func(v *visit) (content, error)
	// act does what a POST asks for, and returns where the browser goes then: a path below the root with its query.
	// nil: the page only shows.
	act func(v *visit) (string, error)
}

// name is the page's, for logs.
func (p page) name() string { return cmp.Or(p.path, "overview") }

// template is the name of the page's template; all actions have one.
func (p page) template() string {
	if p.act != nil {
		return "action"
	}
	return p.name()
}

// content is what a page's function gives to its template.
type content struct {
	// Title is the page's, in the browser's tab too.
	Title string
	// Command is the command line's way to the same; shown at the foot.
	Command string
	// Main is what the template shows.
	Main any
	// Notices stand above it.
	Notices []Notice
	// Live pages are polled.
	Live bool
	// Status is that of the answer; 0 means 200.
	Status int
}

// Notice is a sentence above a page. Kind is "bad", "wait" or "good".
type Notice struct{ Kind, Text string }

// visit is one request of a page.
type visit struct {
	Request

	site  *Site
	ctx   context.Context //nolint:containedctx // of one request
	calls opsapi.Caller
	page  page
	// failed is why a POST did nothing; its page is then shown again, and says so.
	failed error
}

// do makes a call.
func do[Q, A any](v *visit, call opsapi.Call[Q, A], q Q) (A, error) {
	return opsapi.Do(v.ctx, v.calls, call, q)
}

// Serve answers a request. calls makes the calls in the name and the role of who asks.
func (s *Site) Serve(ctx context.Context, calls opsapi.Caller, r Request) Answer {
	if name, ok := strings.CutPrefix(r.Path, "assets/"); ok {
		return s.asset(name)
	}
	v := &visit{Request: r, site: s, ctx: ctx, calls: calls}
	i := slices.IndexFunc(s.pages, func(p page) bool { return p.path == r.Path })
	if i < 0 {
		return v.problem(notFound("no such page"))
	}
	v.page = s.pages[i]
	switch {
	case v.page.act != nil && !r.Who.May():
		return v.problem(deniedTo(r.Who))
	case r.Method == http.MethodGet:
	case r.Method != http.MethodPost || v.page.act == nil:
		return v.problem(&pageError{http.StatusMethodNotAllowed, "this page only shows"})
	default:
		to, err := v.page.act(v)
		if err == nil {
			return Redirect(http.StatusSeeOther, r.Root+to)
		}
		v.failed = err
	}
	c, err := v.page.show(v)
	switch {
	case v.failed != nil && err != nil:
		return v.problem(v.failed)
	case err != nil:
		return v.problem(err)
	}
	if v.failed != nil {
		c.Status, _ = answerOf(v.failed)
		c.Notices = append([]Notice{{"bad", notDone(v.failed)}}, c.Notices...)
	}
	return v.render(v.page.template(), v.page.nav, c)
}

// Known is the name of a page, for logs: empty for a path that is none.
func (s *Site) Known(path string) string {
	i := slices.IndexFunc(s.pages, func(p page) bool { return p.path == path })
	if i < 0 {
		return ""
	}
	return "page " + s.pages[i].name()
}

// Refuse answers somebody who may not see the page, or sent what no page takes.
func (s *Site) Refuse(r Request, status int, reason string) Answer {
	return s.Problem(r, &pageError{status, reason})
}

// Problem answers with the page of an error.
func (s *Site) Problem(r Request, err error) Answer {
	return (&visit{Request: r, site: s}).problem(err)
}

// frame is what the layout shows around a page.
type frame struct {
	content

	SysName, Mode, Version string
	Style, Script          string
	Root, Nav              string
	Who                    opsapi.Who
	At                     time.Time
	// Poll is the number of seconds between two polls; 0 means none.
	Poll int
	// Self is the address of this page, to load it again.
	Self string
	// Menu are the entries of the navigation.
	Menu []menuEntry
}

type menuEntry struct{ Path, Name string }

// menu is the navigation.
func menu() []menuEntry {
	return []menuEntry{{"", "Overview"}, {"documents", "Documents"}, {"runs", "Runs"}, {"findings", "Findings"}}
}

// pollEvery is how often a live page is loaded again while somebody sees it, in seconds.
const pollEvery = 15

func (v *visit) render(name, nav string, c content) Answer {
	f := frame{
		content: c, SysName: v.site.o.SysName, Mode: v.site.o.Mode, Version: v.site.o.Version,
		Style: v.site.style, Script: v.site.script,
		Root: v.Root, Nav: nav, Who: v.Who, At: v.site.o.Now().In(v.site.o.Location),
		Self: v.Root + v.Path, Menu: menu(),
	}
	if len(v.Query) > 0 {
		f.Self += "?" + v.Query.Encode()
	}
	if c.Live && v.Method == http.MethodGet {
		f.Poll = pollEvery
	}
	var b bytes.Buffer
	if err := v.site.templates()[name].ExecuteTemplate(&b, "layout.html", f); err != nil {
		return Answer{
			Status: http.StatusInternalServerError, Headers: headers("text/plain; charset=utf-8"),
			Body: "the page cannot be rendered: " + err.Error(), Err: err,
		}
	}
	return Answer{Status: max(c.Status, http.StatusOK), Headers: headers("text/html; charset=utf-8"), Body: b.String()}
}

// headers are those of every page. The policy allows our own style sheet and script, and nothing else.
func headers(contentType string) map[string]string {
	return map[string]string{
		"Content-Type":            contentType,
		"Cache-Control":           "no-store",
		"Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
		"Referrer-Policy":         "same-origin",
		"X-Content-Type-Options":  "nosniff",
	}
}
