// Package storybook renders every page of the operators' site in every state, from canned data: what tests, screenshots
// and people look at.
package storybook

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"sqlwriter/internal/app/open"
	"sqlwriter/internal/explain"
	"sqlwriter/internal/opsapi"
	"sqlwriter/internal/ui"
)

// Story is a page in one state.
type Story struct {
	// Name is the file's: page, a dash, the state ("overview-stopped").
	Name string
	// Says is one line for people.
	Says string
	// Path and Query are those of the request.
	Path  string
	Query url.Values
	// Form makes it a POST.
	Form url.Values
	// Role is who looks; Operator if empty.
	Role opsapi.Role
	// Mode is the app's; "live" if empty.
	Mode string
	// Answers are the results of the calls by their names ("status.get"): a value of the call's answer type, an error,
	// or a func(request any) (any, error).
	Answers map[string]any
}

// Now is the time of all stories: a Sunday night at 03:13:07 in Chicago.
func Now() time.Time { return time.Date(2026, time.November, 22, 3, 13, 7, 0, zone()) }

func zone() *time.Location { return time.FixedZone("CST", -6*60*60) }

// Ago is the time a duration before Now.
func Ago(d time.Duration) time.Time { return Now().Add(-d) }

// Site is the site that renders a story.
func (s Story) Site() *ui.Site {
	mode := s.Mode
	if mode == "" {
		mode = "live"
	}
	return ui.New(
		ui.Options{
			SysName: "web", Mode: mode, Version: "v0.1.0", Location: zone(), Now: Now,
			Codes: explain.New(open.Faults()),
		})
}

// Calls answers the story's calls, for who looks.
func (s Story) Calls() opsapi.Caller { return opsapi.Canned(s.Request().Who, s.Answer) }

// Answer is the story's answer to a call.
func (s Story) Answer(_ context.Context, name string, request any) (any, error) {
	switch answer := s.Answers[name].(type) {
	case nil:
		return nil, fmt.Errorf("the story %s has no answer for %s", s.Name, name)
	case error:
		return nil, answer
	case func(any) (any, error):
		return answer(request)
	default:
		return answer, nil
	}
}

// Request is the story's request.
func (s Story) Request() ui.Request {
	r := ui.Request{
		Method: http.MethodGet, Path: s.Path, Query: s.Query, Form: s.Form, Root: "/api/ui/",
		Who: opsapi.Who{Name: "a.lopez@example.com", Role: s.Role},
	}
	if s.Role == "" {
		r.Who.Role = opsapi.Operator
	}
	if s.Form != nil {
		r.Method = http.MethodPost
	}
	return r
}

// Render answers the story's request.
func (s Story) Render(ctx context.Context) ui.Answer {
	return s.Site().Serve(ctx, s.Calls(), s.Request())
}

// Handler answers each request below root, which begins and ends with a slash, with the story's page; assets are served
// as they are.
func (s Story) Handler(root string) http.Handler {
	site := s.Site()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request := s.Request()
		request.Root = root
		if path := strings.TrimPrefix(r.URL.Path, root); strings.HasPrefix(path, "assets/") {
			request = ui.Request{Method: http.MethodGet, Path: path}
		}
		a := site.Serve(r.Context(), s.Calls(), request)
		for name, value := range a.Headers {
			w.Header().Set(name, value)
		}
		w.WriteHeader(a.Status)
		_, _ = io.WriteString(w, a.Body) // a browser that went away
	})
}

// Stories are all stories, in the order of the pages.
func Stories() []Story {
	return slices.Concat(overviewStories(), documentStories(), runStories(), findingStories())
}
