package ui

import (
	"fmt"
	"html/template"
	"net/url"
	"strconv"
	"strings"
	"time"

	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
)

// functions are what templates may call besides html/template's own.
func (s *Site) functions() template.FuncMap {
	return template.FuncMap{
		// link is the address of a page below the root: its path and parameters, by pairs. An empty value is left out.
		"link": link,
		// clock is a time of today, or with its date; stamp is a whole time with its zone.
		"clock": s.clock,
		"stamp": func(t time.Time) string {
			if t.IsZero() {
				return ""
			}
			return t.In(s.o.Location).Format("2006-01-02 15:04:05 MST")
		},
		// until is the time to t in words.
		"until": func(t time.Time) string { return span(t.Sub(s.o.Now())) },
		"span":  span,
		// seconds makes a duration of a number of seconds.
		"seconds": func(n int64) time.Duration { return time.Duration(n) * time.Second },
		"number":  number,
		"counted": counted,
		// value is a column's value; an empty text is told apart from NULL, which is no value.
		"value": func(text *string) string {
			if *text == "" {
				return "(empty)"
			}
			return *text
		},
		// says shows the times in a sentence of the app as all others are shown.
		"says": s.says,
		// commands marks the commands in a sentence; advice says what a person does about a code.
		"commands": commands,
		"advice":   s.advice,
		// subject is the document that an entry of the audit log is about; empty for the flow.
		"subject": func(a run.Audit) string {
			if strings.HasPrefix(a.Subject, "flow:") {
				return ""
			}
			return a.Subject
		},
		"plural": ops.Plural,
		"dict":   dict,
	}
}

// commands marks what stands between backquotes as code.
func commands(sentence string) template.HTML {
	var b strings.Builder
	for i, part := range strings.Split(sentence, "`") {
		if i%2 == 1 {
			class := ""
			if strings.HasPrefix(part, "sqlwriterctl ") {
				class = ` class="command"` // whole: to be copied
			}
			b.WriteString("<code" + class + ">" + template.HTMLEscapeString(part) + "</code>")
		} else {
			b.WriteString(template.HTMLEscapeString(part))
		}
	}
	return template.HTML(b.String()) //nolint:gosec // escaped
}

// dict makes a map of pairs, for a part with several arguments.
func dict(pairs ...any) (map[string]any, error) {
	if len(pairs)%2 != 0 {
		return nil, fmt.Errorf("ui: dict: %d arguments, expected pairs", len(pairs))
	}
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		name, ok := pairs[i].(string)
		if !ok {
			return nil, fmt.Errorf("ui: dict: expected a name, found %T", pairs[i])
		}
		m[name] = pairs[i+1]
	}
	return m, nil
}

// link is a path below the root with its query. Empty and zero values are left out, as the calls want it.
func link(path string, pairs ...any) template.URL {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if text := fmt.Sprint(pairs[i+1]); text != "" && text != "0" {
			q.Set(fmt.Sprint(pairs[i]), text)
		}
	}
	if len(q) == 0 {
		return template.URL(path) //nolint:gosec // a path of ours
	}
	return template.URL(path + "?" + q.Encode()) //nolint:gosec // encoded
}

func (s *Site) clock(t time.Time) string {
	return clock(t.In(s.o.Location), s.o.Now().In(s.o.Location))
}

// clock is a time as people read it: without the date if that is today's.
func clock(t, now time.Time) string {
	switch {
	case t.IsZero() || t.Unix() <= 0:
		return "never"
	case t.Format(time.DateOnly) == now.Format(time.DateOnly):
		return t.Format("15:04:05")
	case t.Year() == now.Year():
		return t.Format("Jan 2 15:04")
	}
	return t.Format("2006 Jan 2 15:04")
}

func (s *Site) says(sentence any) string { return ops.ShowTimes(fmt.Sprint(sentence), s.clock) }

// span is a duration in words, in its two largest units.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	switch d = d.Round(time.Second); {
	case d < 0:
		return "0 s"
	case d < 2*time.Minute:
		return strconv.Itoa(int(d/time.Second)) + " s"
	case d < 2*time.Hour:
		return strconv.Itoa(int(d/time.Minute)) + " min"
	case d < 2*day:
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	}
	return strconv.Itoa(int(d/day)) + " days"
}

// number writes a whole number, of zero or more, with commas.
func number(n any) string {
	text := fmt.Sprint(n)
	const group = 3
	for i := len(text) - group; i > 0; i -= group {
		text = text[:i] + "," + text[i:]
	}
	return text
}
