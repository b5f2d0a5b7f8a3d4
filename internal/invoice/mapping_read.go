package invoice

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"

	"sqlwriter/internal/fault"
)

// tableEntry is a table of the file, columnEntry one of its columns. docs/rules.md has the meaning of each member.
type tableEntry struct {
	Key     string            `json:"key"`
	Columns []json.RawMessage `json:"columns"`
}

type columnEntry struct {
	Name          string            `json:"name"`
	From          pathList          `json:"from"`
	Value         *string           `json:"value"`
	Line          Source            `json:"line"`
	Type          string            `json:"type"`
	Missing       string            `json:"missing"`
	Long          string            `json:"long"`
	WithoutOffset string            `json:"without_offset"`
	Status        bool              `json:"status"`
	Words         map[string]string `json:"words"`
	Only          []string          `json:"only"`
	Range         []string          `json:"range"`
	Meaning       string            `json:"meaning"`
	Assumed       string            `json:"assumed"`
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

func (r *mappingReader) read(file []byte) {
	file = bytes.TrimPrefix(file, []byte("\ufeff")) // written by editors on Windows
	var tables map[Table]json.RawMessage
	if err := json.Unmarshal(file, &tables); err != nil {
		r.wrong("expected one JSON object with the tables %s and %s, found %s", Detail, Tracking, jsonFault(err))
		return
	}
	r.repeated(bytes.TrimSpace(file))
	for name := range tables {
		if name != Detail && name != Tracking {
			r.wrong("expected the tables %s and %s, found %s", Detail, Tracking, quoted(string(name)))
		}
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
			if seen[string(name)] {
				r.wrong("expected every member once, found %s twice", quoted(string(name)))
			}
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
	if len(text) == 0 {
		r.wrong("expected its columns, found no such member")
		return
	}
	if err := strictly(text, &t); err != nil {
		r.wrong("expected a key and a list of columns, found %s", jsonFault(err))
		return
	}
	if found := wrongName(t.Key); found != "" {
		r.wrong("key: expected the name of a column, found %s", found)
	}
	if n := len(t.Columns); n == 0 || n > maxColumns {
		r.wrong("expected 1 to %d columns, found %d", maxColumns, n)
	}
	r.m.keys[name] = t.Key
	names := map[string]bool{strings.ToUpper(t.Key): true}
	status := 0
	for i, text := range t.Columns {
		var e columnEntry
		err := strictly(text, &e)
		r.at = fmt.Sprintf("%s, column %d: ", name, i+1)
		if e.Name != "" {
			r.at = string(name) + "." + fault.Truncate(e.Name, fault.MaxForeign) + ": "
		}
		if err != nil {
			r.wrong("expected the members of a column, found %s", jsonFault(err))
			continue
		}
		if found := wrongName(e.Name); found != "" {
			r.wrong("name: expected the name of a column, found %s", found)
		}
		if names[strings.ToUpper(e.Name)] {
			r.wrong("expected every name once in a table, whatever its case, and none that is the key's")
		}
		names[strings.ToUpper(e.Name)] = true
		if e.Status {
			status++
		}
		r.m.columns = append(r.m.columns, r.column(name, e))
	}
	r.at = string(name) + ": "
	if status > 1 || (status == 0 && name == Detail) {
		r.wrong("expected one column with status true, which the failure mark writes, found %d", status)
	}
}

// column makes a column of an entry.
func (r *mappingReader) column(table Table, e columnEntry) Column {
	c := Column{
		Table: table, Name: e.Name, Paths: e.From, WithoutOffset: e.WithoutOffset, Status: e.Status, Words: e.Words,
		Values: e.Only, Meaning: e.Meaning, Assumed: e.Assumed, zone: r.zone,
	}
	r.source(&c, e)
	r.kind(&c, e)
	r.missing(&c, e)
	r.texts(&c, e)
	r.bounds(&c, e)
	if c.WithoutOffset != "" && (c.Kind != Time || c.Source != FromDocument ||
		(c.WithoutOffset != BareInUTC && c.WithoutOffset != BareInZone)) {
		r.wrong("without_offset: expected %s or %s, of a time of the document, found %s", BareInUTC, BareInZone,
			quoted(e.WithoutOffset))
	}
	if e.Value != nil {
		r.constant(&c, *e.Value)
	}
	if c.Status {
		r.status(c)
	}
	return c
}

// source sets the source, of which an entry has exactly one.
func (r *mappingReader) source(c *Column, e columnEntry) {
	sources := 0
	if e.From != nil {
		c.Source, sources = FromDocument, sources+1
		r.paths(e.From)
	}
	if e.Value != nil {
		c.Source, sources = FromMapping, sources+1
	}
	if e.Line != "" {
		c.Source, sources = e.Line, sources+1
		if !slices.Contains([]Source{FromParent, FromDuplicate, FromRequestTime}, e.Line) {
			r.wrong("line: expected %s, %s or %s, found %s", FromParent, FromDuplicate, FromRequestTime,
				quoted(string(e.Line)))
		}
	}
	if sources != 1 {
		r.wrong("expected one of from, value and line, found %d of them", sources)
	}
}

func (r *mappingReader) paths(paths []string) {
	if n := len(paths); n == 0 || n > maxPaths {
		r.wrong("from: expected 1 to %d paths, found %d", maxPaths, n)
	}
	for i, path := range paths {
		switch root, _, _ := strings.Cut(path, "."); {
		case slices.Contains(strings.Split(path, "."), "") || strings.ContainsAny(path, "[]"):
			r.wrong("from: expected a path of members with dots between them, found %s", quoted(path))
		case root == "sql_writer" || strings.HasPrefix(root, "_") || path == "post-processing.duplicate_detail_uids":
			r.wrong("from: expected a member that only the pipeline writes and that has one value, found %s",
				quoted(path))
		case slices.Contains(paths[:i], path):
			r.wrong("from: expected every path once, found %s twice", quoted(path))
		}
	}
}

// types has the grammar of a column's type.
var types = regexp.MustCompile(`^(?:(text)\((\d{1,9})\)|(decimal)\((\d{1,2}),(\d{1,2})\)|(integer)|(flag)\(([^,]+),([^,]+)\)|(time)(\(zone\))?)$`) //nolint:gochecknoglobals // Go has no constant of this type

func (r *mappingReader) kind(c *Column, e columnEntry) {
	usual := map[Source]string{FromParent: "integer", FromDuplicate: "flag(Y,N)", FromRequestTime: "time"}[c.Source]
	text := cmp.Or(e.Type, usual)
	part := types.FindStringSubmatch(text)
	if part == nil {
		r.wrong("type: expected text(n), decimal(p,s), integer, flag(Y,N), time or time(zone), found %s", quoted(e.Type))
		return
	}
	number := func(i int) int { n, _ := strconv.Atoi(part[i]); return n }
	switch {
	case part[1] != "":
		if c.Kind, c.Max = Text, number(2); c.Max == 0 {
			r.wrong("type: expected a text of 1 character or more, found text(0)")
		}
	case part[3] != "":
		c.Kind, c.Precision, c.Scale = Decimal, number(4), number(5)
		if c.Scale > maxScale || c.Precision < max(1, c.Scale) || c.Precision-c.Scale > maxWhole {
			r.wrong("type: expected at most %d digits before the point and %d after it, found %s", maxWhole, maxScale,
				text)
		}
	case part[6] != "":
		c.Kind = Integer
	case part[7] != "":
		c.Kind, c.Flags = Flag, [2]string{part[8], part[9]}
		c.Max = max(utf16Units(part[8]), utf16Units(part[9]))
		if part[8] == part[9] || c.Max > maxFlag {
			r.wrong("type: expected two texts of at most %d characters, for yes and for no, found %s", maxFlag, text)
		}
	default:
		c.Kind, c.Local = Time, part[11] != ""
	}
	if kind, _, _ := strings.Cut(usual, "("); usual != "" && string(c.Kind) != kind {
		r.wrong("type: expected one like %s for line %s, found %s", usual, c.Source, text)
	}
}

func (r *mappingReader) missing(c *Column, e columnEntry) {
	switch {
	case e.Missing == "" || e.Missing == "null":
	case c.Source != FromDocument || (e.Missing != "keep" && e.Missing != "refuse"):
		r.wrong("missing: expected null, keep or refuse, of a value of the document, found %s", quoted(e.Missing))
	default:
		c.Keep, c.Required = e.Missing == "keep", e.Missing == "refuse"
	}
}

func (r *mappingReader) texts(c *Column, e columnEntry) {
	ofText := c.Kind == Text
	if c.Cut = e.Long == "cut"; (e.Long != "" && !ofText) || (e.Long != "" && !c.Cut && e.Long != "refuse") {
		r.wrong("long: expected refuse or cut, of a text, found %s", quoted(e.Long))
	}
	if !ofText && (len(e.Words) > 0 || len(e.Only) > 0) {
		r.wrong("expected words and only for a text alone")
		return
	}
	fits := func(text string) bool { return utf16Units(text) <= c.Max }
	for from, to := range e.Words {
		if !fits(to) || (len(e.Only) > 0 && !slices.Contains(e.Only, to)) {
			r.wrong("words: expected a text that the column takes for %s, found %s", quoted(from), quoted(to))
		}
	}
	for _, text := range e.Only {
		if !fits(text) {
			r.wrong("only: expected texts of at most %d characters, found %s", c.Max, quoted(text))
		}
	}
}

func (r *mappingReader) bounds(c *Column, e columnEntry) {
	if e.Range == nil {
		return
	}
	ok := (c.Kind == Decimal || c.Kind == Integer) && len(e.Range) == 2
	if ok {
		c.Min, c.Limit = e.Range[0], e.Range[1]
		low, high := Exact(c.Min), Exact(c.Limit)
		ok = (low != nil || c.Min == "") && (high != nil || c.Limit == "") &&
			(low == nil || high == nil || low.Cmp(high) <= 0)
	}
	if !ok {
		r.wrong(`range: expected two numbers as texts, the lower one first, "" for none, of a number`)
	}
}

// constant sets the canonical text of a value that the mapping gives.
func (r *mappingReader) constant(c *Column, value string) {
	span, err := json.Marshal(value)
	if err != nil {
		r.wrong("value: %v", err)
		return
	}
	v, refusal := c.normalise(span)
	if refusal != nil {
		r.wrong("value: expected %s, found %s", refusal.Expected, quoted(value))
	}
	c.Constant = v.Text
}

// status checks the status column: a failure mark writes AI-ERROR into it.
func (r *mappingReader) status(c Column) {
	takes := len(c.Values) == 0 || (slices.Contains(c.Values, StatusAIError) && len(c.Values) > 1)
	if c.Kind != Text || c.Source != FromDocument || !c.Required || c.Max < len(StatusAIError) || !takes {
		r.wrong("status: expected a text of the document of at least %d characters with missing refuse, which may be %s and others",
			len(StatusAIError), StatusAIError)
	}
}

// wrongName says why a text cannot be a column's name; empty if it can.
func wrongName(name string) string {
	units := len(utf16.Encode([]rune(name)))
	switch {
	case strings.TrimSpace(name) == "":
		return "an empty text"
	case strings.TrimSpace(name) != name:
		return "blanks around " + quoted(name)
	case strings.ContainsFunc(name, unicode.IsControl) || strings.ContainsRune(name, unicode.ReplacementChar):
		return "a character that cannot stand in a name"
	case units > maxName:
		return fmt.Sprintf("%d characters, and %d fit", units, maxName)
	}
	return ""
}

func quoted(text string) string { return strconv.Quote(fault.Truncate(text, fault.MaxForeign)) }

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
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}
