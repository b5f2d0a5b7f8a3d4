package staging

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"
)

// Violation is one rule that a script root breaks.
type Violation struct {
	// Rule is its name; Source is where it comes from.
	Rule, Source string
	// How says what is wrong, with the function's name where it is about one.
	How string
}

// Violations are all rules that a root breaks.
type Violations []Violation

// Error lists them.
func (v *Violations) Error() string {
	lines := make([]string, len(*v))
	for i, one := range *v {
		lines[i] = fmt.Sprintf("%s: %s (%s)", one.Rule, one.How, one.Source)
	}
	return "the script root breaks rules of the host:\n  " + strings.Join(lines, "\n  ")
}

// Check holds a script root against every rule. Errors: *Violations with all that are broken; unreadable files.
func Check(files fs.FS) error {
	r, err := load(files)
	if err != nil {
		return err
	}
	var found Violations
	for _, rule := range rules() {
		if how := rule.broken(r); how != "" {
			found = append(found, Violation{Rule: rule.name, Source: rule.source, How: how})
		}
	}
	if len(found) > 0 {
		return &found
	}
	return nil
}

// root is a script root, read.
type root struct {
	files     fs.FS
	host      object
	functions []function
}

// function is one function's folder.
type function struct {
	name     string
	config   object
	bindings []object
}

func load(files fs.FS) (*root, error) {
	r := &root{files: files}
	var err error
	if r.host, err = readObject(files, "host.json"); err != nil {
		return nil, err
	}
	paths, err := fs.Glob(files, "*/function.json")
	if err != nil {
		return nil, err
	}
	for _, p := range paths {
		f := function{name: path.Dir(p)}
		if f.config, err = readObject(files, p); err != nil {
			return nil, err
		}
		for _, b := range f.config.list("bindings") {
			if o, ok := b.(map[string]any); ok {
				f.bindings = append(f.bindings, o)
			}
		}
		r.functions = append(r.functions, f)
	}
	return r, nil
}

func (r *root) names() []string {
	names := make([]string, len(r.functions))
	for i, f := range r.functions {
		names[i] = f.name
	}
	return names
}

// trigger answers the function's trigger of a type.
func (f function) trigger(kind string) (object, bool) {
	for _, b := range f.bindings {
		if b.text("type") == kind {
			return b, true
		}
	}
	return nil, false
}

// object is a JSON object; absent and wrong kinds read as empty.
type object map[string]any

func readObject(files fs.FS, name string) (object, error) {
	content, err := fs.ReadFile(files, name)
	if err != nil {
		return nil, err
	}
	var o object
	if err := json.Unmarshal(content, &o); err != nil {
		return nil, fmt.Errorf("%s is no JSON object: %w", name, err)
	}
	return o, nil
}

// text answers a text or a number.
func (o object) text(name string) string {
	switch v := o[name].(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return ""
}

func (o object) truth(name string) bool { v, _ := o[name].(bool); return v }

func (o object) object(name string) object { v, _ := o[name].(map[string]any); return v }

func (o object) list(name string) []any { v, _ := o[name].([]any); return v }

// hasNone says which of the names is there.
func (o object) hasNone(names ...string) string {
	for _, name := range names {
		if _, there := o[name]; there {
			return name + " must not be there"
		}
	}
	return ""
}

// want compares a text.
func want(got, expected string) string {
	if got == expected {
		return ""
	}
	return fmt.Sprintf("expected %q, found %q", expected, got)
}

// first is the first complaint.
func first(complaints ...string) string {
	for _, c := range complaints {
		if c != "" {
			return c
		}
	}
	return ""
}

// each makes a rule for every function.
func each(broken func(f function) string) func(*root) string {
	return func(r *root) string {
		for _, f := range r.functions {
			if how := broken(f); how != "" {
				return f.name + ": " + how
			}
		}
		return ""
	}
}

// cosmos makes a rule for every cosmosDBTrigger.
func cosmos(broken func(b object) string) func(*root) string {
	return each(func(f function) string {
		if b, ok := f.trigger("cosmosDBTrigger"); ok {
			return broken(b)
		}
		return ""
	})
}

// http makes a rule for every httpTrigger.
func http(broken func(b object, f function) string) func(*root) string {
	return each(func(f function) string {
		if b, ok := f.trigger("httpTrigger"); ok {
			return broken(b, f)
		}
		return ""
	})
}

// span reads the host's hh:mm:ss.
func span(text string) (time.Duration, bool) {
	t, err := time.Parse(time.TimeOnly, text)
	if err != nil {
		return 0, false
	}
	return t.Sub(t.Truncate(24 * time.Hour)), true
}
