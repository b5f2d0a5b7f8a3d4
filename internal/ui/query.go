package ui

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
	"sqlwriter/internal/run"
)

// query makes a call's request of the page's parameters. An empty field of a form is no parameter. extra are parameters
// of the page alone.
func query[Q, A any](v *visit, call opsapi.Call[Q, A], extra ...string) (Q, error) {
	texts := map[string]string{}
	for name := range v.Query {
		if text := v.Query.Get(name); text != "" {
			texts[name] = text
		}
	}
	for _, name := range extra {
		delete(texts, name)
	}
	for _, name := range []string{"since", "until"} { // people write 1d, calls want a time
		text := strings.TrimSpace(texts[name])
		if text == "" {
			continue
		}
		t, ok := ops.Moment(text, v.site.o.Now(), v.site.o.Location)
		if !ok {
			var none Q
			return none,
				usage(fmt.Sprintf("%s: expected %s, found %q", name, ops.MomentForms, run.Truncate(text, run.MaxKind)))
		}
		texts[name] = t.Format(time.RFC3339Nano)
	}
	return call.Query(texts)
}

// shownOnPage is how many rows a page of a list has.
const shownOnPage = 50

// nextPage is the address of another page of the same list; empty without one.
func (v *visit) nextPage(page string) string {
	if page == "" {
		return ""
	}
	q := url.Values{"page": {page}}
	for n := range v.Query {
		if text := v.Query.Get(n); text != "" && n != "page" {
			q.Set(n, text)
		}
	}
	return v.Path + "?" + q.Encode()
}

// flags writes parameters as flags of the command line, by pairs of flag and value; an empty value is left out.
func flags(command string, pairs ...string) string {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			command += " " + pairs[i] + " " + shellWord(pairs[i+1])
		}
	}
	return command
}
