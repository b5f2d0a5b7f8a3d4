package invoice

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"

	"sqlwriter/internal/fault"
)

// Layout is what one deployment's tables call things where no document of the user says it: the columns whose name is
// assumed, and the key of each table. It changes statements and nothing else: what a document means, its content hash
// and the row hashes know the names of the column table only. The zero value stands for DefaultLayout.
type Layout struct {
	// Columns is the column table with this deployment's names, aligned with the function Columns. Nil stands for the
	// column table as it is: see OrDefault.
	Columns []Column
	keys    map[Table]string
}

// DefaultLayout is the column table as it stands.
func DefaultLayout() Layout { return Layout{Columns: Columns()} }

// OrDefault is the layout itself, or DefaultLayout for the zero value. Adapters call it once, when they are opened.
func (l Layout) OrDefault() Layout {
	if l.Columns == nil {
		l.Columns = Columns()
	}
	return l
}

// Key is the name of a table's key column.
func (l Layout) Key(t Table) string {
	if name, renamed := l.keys[t]; renamed {
		return name
	}
	return KeyColumn
}

// ReadLayout reads a file of column names: for each table the names of the column table, and what they are called here.
// What the file does not name keeps its name.
//
//	{"IVCE_TRKG_MSTR": {"RQST_TS": "REQUEST_TIME", "IVCE_DTL_UID": "DTL_ID"}}
//
// It refuses tables and columns that the column table does not have, columns that a document of the user names, names
// that no column can have, and two columns of one table with one name (which case does not tell apart). Errors by kind:
// infrastructure, code "settings"; the reason lists everything that is wrong.
func ReadLayout(file []byte) (Layout, error) {
	names, problems := parseNames(file)
	l := Layout{Columns: Columns(), keys: map[Table]string{}}
	for _, n := range names {
		if wrong := l.rename(n); wrong != "" {
			problems = append(problems, string(n.table)+"."+n.old+": "+wrong)
		}
	}
	problems = append(problems, l.clashes()...)
	if len(problems) > 0 {
		return Layout{}, fault.New(fault.Infrastructure, "invoice: column names", "settings", "%s", strings.Join(problems, "; "))
	}
	return l, nil
}

// rename makes one change, or says why not.
func (l Layout) rename(n newName) string {
	if found := wrongName(n.name); found != "" {
		return "expected the name of a column, found " + found
	}
	if n.old == KeyColumn {
		l.keys[n.table] = n.name
		return ""
	}
	i := slices.IndexFunc(Columns(), func(c Column) bool { return c.Table == n.table && c.Name == n.old })
	switch {
	case i < 0:
		return "expected a name of the column table, found none like it"
	case !l.Columns[i].nameAssumed():
		return "expected a column whose name is assumed, found one that the requirements name"
	}
	l.Columns[i].Name = n.name
	return ""
}

// clashes are the columns of one table that have one name.
func (l Layout) clashes() []string {
	type place struct {
		table Table
		name  string
	}
	seen := map[place]bool{}
	for _, t := range []Table{Detail, Tracking} {
		seen[place{t, strings.ToUpper(l.Key(t))}] = true
	}
	var found []string
	for _, c := range l.Columns {
		p := place{c.Table, strings.ToUpper(c.Name)}
		if seen[p] {
			found = append(found, fmt.Sprintf("%s: expected every name once, found two columns %s", c.Table, c.Name))
		}
		seen[p] = true
	}
	return found
}

// nameAssumed says whether the column's name is our choice. Where only the path is, a document of the user names the
// column, and whoever calls it otherwise has another table.
func (c Column) nameAssumed() bool { return c.Assumed == assumedName || c.Assumed == assumedNamePath }

// maxColumnName is the longest identifier of SQL Server (sysname), in UTF-16 units.
const maxColumnName = 128

// wrongName says what keeps a text from being a column's name.
func wrongName(name string) string {
	units := len(utf16.Encode([]rune(name)))
	switch {
	case strings.TrimSpace(name) == "":
		return "an empty text"
	case strings.TrimSpace(name) != name:
		return "blanks around " + strconv.Quote(fault.Truncate(name, fault.MaxForeign))
	case strings.ContainsFunc(name, unicode.IsControl) || strings.ContainsRune(name, unicode.ReplacementChar):
		return "a character that cannot stand in a name"
	case units > maxColumnName:
		return fmt.Sprintf("%d characters, and %d fit", units, maxColumnName)
	}
	return ""
}

// newName is one entry of the file.
type newName struct {
	table     Table
	old, name string
}

// parseNames reads the file as tokens: a name that stands twice would else be lost in silence. Values of what is not
// understood are never repeated: the setting may name a file of another kind.
func parseNames(file []byte) (names []newName, problems []string) {
	file = bytes.TrimPrefix(file, []byte("\ufeff")) // editors on Windows put it there
	dec := json.NewDecoder(bytes.NewReader(file))
	tables := map[string]bool{}
	err := eachEntry(dec, func(table string) error {
		if tables[table] {
			problems = append(problems, fmt.Sprintf("expected every table once, found %s twice", table))
		}
		tables[table] = true
		if t := Table(table); t != Detail && t != Tracking {
			problems = append(problems, fmt.Sprintf("expected the tables %s and %s, found %s", Detail, Tracking, strconv.Quote(fault.Truncate(table, fault.MaxForeign))))
			var skipped json.RawMessage
			return dec.Decode(&skipped)
		}
		columns := map[string]bool{}
		return eachEntry(dec, func(column string) error {
			if columns[column] {
				problems = append(problems, fmt.Sprintf("%s: expected every column once, found %s twice", table, column))
			}
			columns[column] = true
			var name string
			if err := dec.Decode(&name); err != nil {
				return err
			}
			names = append(names, newName{table: Table(table), old: fault.Truncate(column, fault.MaxForeign), name: name})
			return nil
		})
	})
	if err == nil {
		if _, end := dec.Token(); !errors.Is(end, io.EOF) {
			err = errors.New("more behind the object")
		}
	}
	if err != nil {
		problems = append(problems, "expected one JSON object with the names by table, found "+jsonFault(err))
	}
	return names, problems
}

// errNoObject is a value of another type where an object belongs.
var errNoObject = errors.New("something that is no object")

// eachEntry walks through the next value, which must be an object. each must read the entry's value.
func eachEntry(dec *json.Decoder, each func(name string) error) error {
	begin, err := dec.Token()
	if err != nil {
		return err
	}
	if begin != json.Delim('{') {
		return errNoObject
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return err
		}
		text, _ := name.(string) // in an object every second token is one
		if err := each(text); err != nil {
			return err
		}
	}
	_, err = dec.Token()
	return err
}

// jsonFault says in words what the decoder found, without the value.
func jsonFault(err error) string {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind):
		return "a " + kind.Value + " where a name belongs"
	case errors.As(err, &syntax):
		return fmt.Sprintf("no JSON (at byte %d)", syntax.Offset)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "its end before it was complete"
	}
	return err.Error()
}
