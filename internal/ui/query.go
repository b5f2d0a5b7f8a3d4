package ui

import (
	"net/url"

	"sqlwriter/internal/opsapi"
)

// query makes a call's request of the page's parameters. An empty field of a form is no parameter. extra are parameters of the page alone.
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
	return call.Query(texts)
}

// with is the page's address with one parameter changed; an empty value takes it out.
func (v *visit) with(name, value string) string {
	q := url.Values{}
	for n := range v.Query {
		if text := v.Query.Get(n); text != "" && n != name {
			q.Set(n, text)
		}
	}
	if value != "" {
		q.Set(name, value)
	}
	if len(q) == 0 {
		return v.Path
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
