package opsapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
)

// KeyParameter is the query parameter in which the host takes the function key. It is nobody's parameter, and never
// refused.
const KeyParameter = "code"

// Parameter is a parameter of a call: a member of its request type.
type Parameter struct {
	Name string
	// Required means that the use case refuses a request without it.
	Required bool
	Type     reflect.Type
	index    []int
}

// Parameters returns the row's parameters in the order of the type.
func (r Row) Parameters() []Parameter { return Members(r.Request) }

// Members are a struct's members as encoding/json sees them, those of embedded structs included.
func Members(t reflect.Type) []Parameter { return members(t, nil) }

func members(t reflect.Type, at []int) (all []Parameter) {
	for i := range t.NumField() {
		f := t.Field(i)
		index := append(slices.Clone(at), i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			all = append(all, members(f.Type, index)...)
		case name != "-" && f.IsExported():
			all = append(all,
				Parameter{Name: name, Required: !strings.Contains(options, "omit"), Type: f.Type, index: index})
		}
	}
	return all
}

func usage(format string, args ...any) error {
	return &ops.RequestError{Refusal: ops.Usage, Message: fmt.Sprintf(format, args...)}
}

// unknown refuses a name that is no parameter, and lists the known ones.
func (r Row) unknown(what, name string) error {
	var known []string
	for _, p := range r.Parameters() {
		known = append(known, p.Name)
	}
	if len(known) == 0 {
		known = []string{"none"}
	}
	return usage("%s: unknown %s of %s; known: %s", run.Truncate(name, run.MaxKind), what, r.Name,
		strings.Join(known, ", "))
}

// Read makes the request of a call: a GET's from the query, a POST's from the body. Errors: *ops.RequestError (usage).
func (r Row) Read(query map[string]string, body []byte) (any, error) {
	request := reflect.New(r.Request)
	parameters := r.Parameters()
	for name, text := range query {
		i := slices.IndexFunc(parameters, func(p Parameter) bool { return p.Name == name })
		switch {
		case strings.EqualFold(name, KeyParameter):
		case r.Method != http.MethodGet:
			return nil, usage("%s: %s takes its parameters in the body", run.Truncate(name, run.MaxKind), r.Name)
		case i < 0:
			return nil, r.unknown("parameter", name)
		case text == "": // it would mean any
			return nil, usage("%s: expected a value, found nothing", name)
		default:
			if want := parse(request.Elem().FieldByIndex(parameters[i].index), text); want != "" {
				return nil, usage("%s: expected %s, found %q", name, want, run.Truncate(text, run.MaxKind))
			}
		}
	}
	if r.Method != http.MethodGet {
		if err := r.decode(body, request.Interface()); err != nil {
			return nil, err
		}
	}
	return request.Elem().Interface(), nil
}

// parse sets a field from text. It returns what was expected if the text is something else.
func parse(to reflect.Value, text string) (want string) {
	switch to.Interface().(type) {
	case time.Time:
		t, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return "a time such as 2026-01-02T15:04:05-06:00"
		}
		to.Set(reflect.ValueOf(t))
		return ""
	}
	switch to.Kind() { //nolint:exhaustive // the others are refused below
	case reflect.String:
		to.SetString(text)
	case reflect.Int, reflect.Int64:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return "a whole number"
		}
		to.SetInt(n)
	case reflect.Bool:
		is, err := strconv.ParseBool(text)
		if err != nil {
			return "true or false"
		}
		to.SetBool(is)
	case reflect.Slice: // separated by commas; the host also joins a repeated parameter with them
		for part := range strings.SplitSeq(text, ",") {
			if part = strings.TrimSpace(part); part == "" {
				continue
			}
			one := reflect.New(to.Type().Elem()).Elem()
			if want := parse(one, part); want != "" {
				return want
			}
			to.Set(reflect.Append(to, one))
		}
	default:
		return "a value of type " + to.Type().String() + ", which no query can hold"
	}
	return ""
}

// values are the parameters of a GET as its query, without the zero ones. It is the inverse of Read.
func (r Row) values(request any) url.Values {
	from, values := reflect.ValueOf(request), url.Values{}
	for _, p := range r.Parameters() {
		if field := from.FieldByIndex(p.index); !field.IsZero() {
			values.Set(p.Name, written(field))
		}
	}
	return values
}

func written(v reflect.Value) string {
	if t, ok := v.Interface().(time.Time); ok {
		return t.Format(time.RFC3339Nano)
	}
	if v.Kind() != reflect.Slice {
		return fmt.Sprint(v.Interface())
	}
	parts := make([]string, v.Len())
	for i := range parts {
		parts[i] = written(v.Index(i))
	}
	return strings.Join(parts, ",")
}

// decode reads a body: one JSON object without unknown members.
func (r Row) decode(text []byte, to any) error {
	bad := func(format string, args ...any) error { return usage("the body: "+format, args...) }
	switch text = bytes.TrimSpace(text); {
	case len(text) == 0:
		return bad("expected a JSON object, found nothing (the host passes none on without a Content-Length)")
	case text[0] != '{':
		return bad("expected a JSON object, found something else")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(to)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	var clock *time.ParseError
	switch {
	case err == nil:
	case errors.As(err, &clock):
		return bad("expected times such as 2026-01-02T15:04:05-06:00, found something else")
	case errors.As(err, &kind):
		return usage("%s: expected a %s, found a %s", kind.Field, kind.Type, kind.Value)
	case errors.As(err, &syntax), errors.Is(err, io.ErrUnexpectedEOF):
		return bad("expected a JSON object, found text that is not JSON")
	default:
		if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
			return r.unknown("member", strings.Trim(name, `"`))
		}
		return bad("%s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return bad("expected one JSON object, found more behind it")
	}
	return nil
}
