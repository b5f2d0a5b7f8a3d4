package invoice

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"sqlwriter/internal/fault"
)

// tableEntry is a table of the file.
type tableEntry struct {
	Key     string            `json:"key"`
	Columns []json.RawMessage `json:"columns"`
}

// FileColumn is a column of the file. docs/rules.md has the meaning of each member.
type FileColumn struct {
	Name          string            `json:"name"`
	From          pathList          `json:"from,omitempty"`
	Value         *string           `json:"value,omitempty"`
	Line          Source            `json:"line,omitempty"`
	Type          string            `json:"type,omitempty"`
	Missing       string            `json:"missing,omitempty"`
	Long          string            `json:"long,omitempty"`
	WithoutOffset string            `json:"without_offset,omitempty"`
	Status        bool              `json:"status,omitempty"`
	Words         map[string]string `json:"words,omitempty"`
	Only          []string          `json:"only,omitempty"`
	Range         []string          `json:"range,omitempty"`
	Meaning       string            `json:"meaning,omitempty"`
	Assumed       string            `json:"assumed,omitempty"`
}

// pathList is one path, or a list of them.
type pathList []string

// UnmarshalJSON implements json.Unmarshaler.
func (p *pathList) UnmarshalJSON(b []byte) error {
	if typeOf(b) == jsonText {
		*p = pathList{decode(b)}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(p))
}

// MarshalJSON implements json.Marshaler.
func (p pathList) MarshalJSON() ([]byte, error) {
	if len(p) == 1 {
		return json.Marshal(p[0])
	}
	return json.Marshal([]string(p))
}

// Bounds of a mapping. A column has at most maxPaths paths; the staged line of a request has at most 1,024 columns. A
// staged decimal has maxScale digits after the point and maxWhole before it. A name has at most maxName UTF-16 units,
// as sysname of SQL Server.
const (
	maxPaths   = 5
	maxColumns = 200
	maxScale   = 12
	maxWhole   = 26
	maxName    = 128
	maxFlag    = 20
)

// mappingReader reads a file into a mapping and collects what is wrong with it.
type mappingReader struct {
	m        *Mapping
	zone     *time.Location
	problems []string
	// at is the place in the file that is read.
	at string
}

func (r *mappingReader) wrong(format string, args ...any) {
	r.problems = append(r.problems, r.at+fmt.Sprintf(format, args...))
}

// expect reports a member of the place that is not as expected.
func (r *mappingReader) expect(ok bool, member, expected string, found any) {
	if text, is := found.(string); is {
		found = strconv.Quote(fault.Truncate(text, fault.MaxForeign))
	}
	if !ok {
		r.wrong("%s: expected %s, found %v", member, expected, found)
	}
}

func (r *mappingReader) read(file []byte) {
	file = bytes.TrimPrefix(file, []byte("\ufeff")) // written by editors on Windows
	var tables map[Table]json.RawMessage
	if err := json.Unmarshal(file, &tables); err != nil {
		r.wrong("expected one JSON object with the tables %s and %s, found %s", Detail, Tracking, jsonFault(err))
		return
	}
	r.repeated(bytes.TrimSpace(file))
	for name := range tables {
		r.expect(name == Detail || name == Tracking, "tables", fmt.Sprint(Detail, " and ", Tracking), string(name))
	}
	for _, name := range []Table{Detail, Tracking} {
		r.at = string(name) + ": "
		r.table(name, tables[name])
	}
	r.at = ""
}

// repeated reports members that an object of the file has twice: the decoder takes the last one silently.
func (r *mappingReader) repeated(value []byte) {
	switch typeOf(value) {
	case jsonObject:
		seen := map[string]bool{}
		eachMember(value, func(name, value []byte) {
			r.expect(!seen[string(name)], "members", "every one once", string(name))
			seen[string(name)] = true
			r.repeated(value)
		})
	case jsonList:
		eachElement(value, func(_ int, value []byte) { r.repeated(value) })
	case absent, jsonNull, jsonBool, jsonNumber, jsonText:
	}
}

func (r *mappingReader) table(name Table, text []byte) {
	var t tableEntry
	if err := strictly(text, &t); err != nil {
		r.wrong("expected a key and a list of columns, found %s", jsonFault(err))
		return
	}
	r.name("key", t.Key)
	r.expect(len(t.Columns) > 0 && len(t.Columns) <= maxColumns, "columns", fmt.Sprintf("1 to %d", maxColumns),
		len(t.Columns))
	r.m.keys[name] = t.Key
	names, status := map[string]bool{strings.ToUpper(t.Key): true}, 0
	for i, text := range t.Columns {
		var e FileColumn
		err := strictly(text, &e)
		r.at = fmt.Sprintf("%s, column %d: ", name, i+1)
		if e.Name != "" {
			r.at = string(name) + "." + fault.Truncate(e.Name, fault.MaxForeign) + ": "
		}
		if err != nil {
			r.wrong("expected the members of a column, found %s", jsonFault(err))
			continue
		}
		r.name("name", e.Name)
		r.expect(!names[strings.ToUpper(e.Name)], "name", "every name once in a table, whatever its case, and not the key's",
			e.Name)
		names[strings.ToUpper(e.Name)] = true
		if e.Status {
			status++
		}
		r.m.columns = append(r.m.columns, r.column(name, e))
	}
	r.at = string(name) + ": "
	r.expect(status == 1 || (status == 0 && name == Tracking), "status",
		"one column with it, which the failure mark writes", status)
}

// name checks that a text can be a column's name.
func (r *mappingReader) name(member, name string) {
	r.expect(strings.TrimSpace(name) == name && name != "", member, "a name without blanks around it", name)
	r.expect(!strings.ContainsFunc(name, unicode.IsControl) && !strings.ContainsRune(name, unicode.ReplacementChar),
		member, "characters that can stand in a name", name)
	r.expect(utf16Units(name) <= maxName, member, fmt.Sprintf("at most %d characters", maxName), utf16Units(name))
}

// column makes a column of an entry.
func (r *mappingReader) column(table Table, e FileColumn) Column {
	c := Column{
		Table: table, Name: e.Name, Paths: e.From, WithoutOffset: e.WithoutOffset, Status: e.Status, Words: e.Words,
		Values: e.Only, Meaning: e.Meaning, Assumed: e.Assumed, zone: r.zone,
	}
	r.source(&c, e)
	r.kind(&c, e)
	c.Keep, c.Required, c.Cut = e.Missing == "keep", e.Missing == "refuse", e.Long == "cut"
	r.expect(e.Missing == "" || e.Missing == "null" || (c.Source == FromDocument && (c.Keep || c.Required)), "missing",
		"null, keep or refuse, of a value of the document", e.Missing)
	r.expect(e.Long == "" || (c.Kind == Text && (c.Cut || e.Long == "refuse")), "long", "refuse or cut, of a text",
		e.Long)
	r.expect(c.WithoutOffset == "" || (c.Kind == Time && c.Source == FromDocument &&
		(c.WithoutOffset == BareInUTC || c.WithoutOffset == BareInZone)), "without_offset",
		fmt.Sprintf("%s or %s, of a time of the document", BareInUTC, BareInZone), c.WithoutOffset)
	r.texts(c)
	if e.Range != nil {
		r.bounds(&c, e.Range)
	}
	if e.Value != nil {
		r.constant(&c, *e.Value)
	}
	marked := len(c.Values) == 0 || (slices.Contains(c.Values, StatusAIError) && len(c.Values) > 1)
	marked = marked && c.Kind == Text && c.Max >= len(StatusAIError)
	r.expect(!c.Status || (marked && c.Source == FromDocument && c.Required), "status",
		"a text of the document of at least 8 characters with missing refuse, which may be AI-ERROR and others", c.Name)
	return c
}

// source sets the source, of which an entry has exactly one.
func (r *mappingReader) source(c *Column, e FileColumn) {
	sources := 0
	given := map[Source]bool{FromDocument: e.From != nil, FromMapping: e.Value != nil, e.Line: e.Line != ""}
	for source, there := range given {
		if there {
			c.Source, sources = source, sources+1
		}
	}
	r.expect(sources == 1, "source", "one of from, value and line", sources)
	r.expect(slices.Contains([]Source{"", FromParent, FromDuplicate, FromRequestTime}, e.Line), "line",
		fmt.Sprintf("%s, %s or %s", FromParent, FromDuplicate, FromRequestTime), string(e.Line))
	if e.From == nil {
		return
	}
	r.expect(len(e.From) > 0 && len(e.From) <= maxPaths, "from", fmt.Sprintf("1 to %d paths", maxPaths), len(e.From))
	for i, path := range e.From {
		root, _, _ := strings.Cut(path, ".")
		r.expect(!slices.Contains(strings.Split(path, "."), "") && !strings.ContainsAny(path, "[]"), "from",
			"a path of members with dots between them", path)
		ours := root == "sql_writer" || strings.HasPrefix(root, "_")
		r.expect(!ours && path != "post-processing.duplicate_detail_uids", "from",
			"a member that only the pipeline writes and that has one value", path)
		r.expect(!slices.Contains(e.From[:i], path), "from", "every path once", path)
	}
}

// types has the grammar of a column's type.
var types = regexp.MustCompile(`^(?:(text)\((\d{1,9})\)|(decimal)\((\d{1,2}),(\d{1,2})\)|(integer)|(flag)\(([^,]+),([^,]+)\)|(time)(\(zone\))?)$`) //nolint:gochecknoglobals // Go has no constant of this type

func (r *mappingReader) kind(c *Column, e FileColumn) {
	usual := map[Source]string{FromParent: "integer", FromDuplicate: "flag(Y,N)", FromRequestTime: "time"}[c.Source]
	text := cmp.Or(e.Type, usual)
	part := types.FindStringSubmatch(text)
	if part == nil {
		r.expect(false, "type", "text(n), decimal(p,s), integer, flag(Y,N), time or time(zone)", e.Type)
		return
	}
	number := func(i int) int { n, _ := strconv.Atoi(part[i]); return n }
	c.Kind = Kind(cmp.Or(part[1], part[3], part[6], part[7], part[10]))
	kind, _, _ := strings.Cut(usual, "(")
	r.expect(usual == "" || string(c.Kind) == kind, "type", "one like "+usual, text)
	switch c.Kind {
	case Text:
		c.Max = number(2)
		r.expect(c.Max > 0, "type", "a text of 1 character or more", text)
	case Decimal:
		c.Precision, c.Scale = number(4), number(5)
		r.expect(c.Scale <= maxScale && c.Precision >= max(1, c.Scale) && c.Precision-c.Scale <= maxWhole, "type",
			fmt.Sprintf("at most %d digits before the point and %d after it", maxWhole, maxScale), text)
	case Flag:
		c.Flags = [2]string{part[8], part[9]}
		c.Max = max(utf16Units(part[8]), utf16Units(part[9]))
		r.expect(part[8] != part[9] && c.Max <= maxFlag, "type",
			fmt.Sprintf("two texts of at most %d characters, for yes and for no", maxFlag), text)
	case Time:
		c.Local = part[11] != ""
	case Integer:
	}
}

// texts checks the words and the allowed values.
func (r *mappingReader) texts(c Column) {
	r.expect(c.Kind == Text || (len(c.Words) == 0 && len(c.Values) == 0), "words and only", "a text", string(c.Kind))
	for from, to := range c.Words {
		r.expect(utf16Units(to) <= c.Max && (len(c.Values) == 0 || slices.Contains(c.Values, to)), "words",
			"a text that the column takes for "+strconv.Quote(from), to)
	}
	for _, text := range c.Values {
		r.expect(utf16Units(text) <= c.Max, "only", fmt.Sprintf("texts of at most %d characters", c.Max), text)
	}
}

func (r *mappingReader) bounds(c *Column, limits []string) {
	ok := (c.Kind == Decimal || c.Kind == Integer) && len(limits) == 2
	if ok {
		c.Min, c.Limit = limits[0], limits[1]
		low, high := Exact(c.Min), Exact(c.Limit)
		ok = (low != nil || c.Min == "") && (high != nil || c.Limit == "") &&
			(low == nil || high == nil || low.Cmp(high) <= 0)
	}
	r.expect(ok, "range", `two numbers as texts, the lower one first, "" for none, of a number`, strings.Join(limits, ", "))
}

// constant sets the canonical text of a value that the mapping gives.
func (r *mappingReader) constant(c *Column, value string) {
	span, err := json.Marshal(value)
	v, refusal := c.normalise(span)
	r.expect(err == nil && refusal == nil, "value", "one that the column takes", value)
	c.Constant = v.Text
}

// strictly decodes a value of the file, and refuses members that nothing reads.
func strictly(text []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	return dec.Decode(into)
}

// jsonFault describes a decoder's error without a value of the file.
func jsonFault(err error) string {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind):
		return strings.TrimSuffix("JSON of type "+kind.Value+" in the member "+kind.Field, " in the member ")
	case errors.As(err, &syntax):
		return fmt.Sprintf("invalid JSON (at byte %d)", syntax.Offset)
	case errors.Is(err, io.EOF):
		return "its end"
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}
