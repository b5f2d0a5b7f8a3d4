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

// Layout has one deployment's names of columns and keys whose names are assumed. It changes statements only: the
// meaning of documents and all hashes use the names of the column table. The zero value means DefaultLayout.
type Layout struct {
	// Columns is the column table with this deployment's names, aligned with the function Columns. Nil means the column
	// table; see OrDefault.
	Columns []Column
	keys    map[Table]string
}

// DefaultLayout has the names of the column table.
func DefaultLayout() Layout { return Layout{Columns: Columns()} }

// OrDefault returns the layout, or DefaultLayout for the zero value. Adapters call it once, when they are opened.
func (l Layout) OrDefault() Layout {
	if l.Columns == nil {
		l.Columns = Columns()
	}
	return l
}

// Key returns the name of a table's key column.
func (l Layout) Key(t Table) string {
	if name, renamed := l.keys[t]; renamed {
		return name
	}
	return KeyColumn
}

// ReadLayout reads a file of column names: for each table, the names of the column table and the names here. Columns
// that the file omits keep their names.
//
//	{"IVCE_TRKG_MSTR": {"RQST_TS": "REQUEST_TIME", "IVCE_DTL_UID": "DTL_ID"}}
//
// It refuses unknown tables and columns, columns that a document of the user names, invalid names, and repeated names
// of a table in any case. Errors by kind: infrastructure, code "settings", with all problems as the reason.
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
		return Layout{},
			fault.New(fault.Infrastructure, "invoice: column names", "settings", "%s", strings.Join(problems, "; "))
	}
	return l, nil
}

// rename applies one change or returns the problem.
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

// clashes reports columns of one table with the same name.
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

// nameAssumed reports whether the column's name is our choice. If only the path is, a document of the user names the
// column, and it cannot be renamed.
func (c Column) nameAssumed() bool { return c.Assumed == assumedName || c.Assumed == assumedNamePath }

// maxColumnName is the longest identifier of SQL Server (sysname), in UTF-16 units.
const maxColumnName = 128

// wrongName says why a text cannot be a column's name; empty if it can.
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

type newName struct {
	table     Table
	old, name string
}

// parseNames reads the file token by token, because a map would drop a repeated name silently. Messages never repeat
// unknown content: the setting may name a file of another kind.
func parseNames(file []byte) (names []newName, problems []string) {
	file = bytes.TrimPrefix(file, []byte("\ufeff")) // written by editors on Windows
	dec := json.NewDecoder(bytes.NewReader(file))
	tables := map[string]bool{}
	err := eachEntry(dec, func(table string) error {
		if tables[table] {
			problems = append(problems, fmt.Sprintf("expected every table once, found %s twice", table))
		}
		tables[table] = true
		if t := Table(table); t != Detail && t != Tracking {
			problems = append(problems,
				fmt.Sprintf("expected the tables %s and %s, found %s", Detail, Tracking,
					strconv.Quote(fault.Truncate(table, fault.MaxForeign))))
			var skipped json.RawMessage
			return dec.Decode(&skipped)
		}
		columns := map[string]bool{}
		return eachEntry(dec, func(column string) error {
			if columns[column] {
				problems = append(problems,
					fmt.Sprintf("%s: expected every column once, found %s twice", table, column))
			}
			columns[column] = true
			var name string
			if err := dec.Decode(&name); err != nil {
				return err
			}
			names = append(names,
				newName{table: Table(table), old: fault.Truncate(column, fault.MaxForeign), name: name})
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

// errNoObject: a value of another type where an object is expected.
var errNoObject = errors.New("a value that is not an object")

// eachEntry visits the entries of the next value, which must be an object. The callback must read the entry's value.
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
		text, _ := name.(string) // keys are always strings
		if err := each(text); err != nil {
			return err
		}
	}
	_, err = dec.Token()
	return err
}

// jsonFault describes a decoder's error without the value.
func jsonFault(err error) string {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind):
		return "a " + kind.Value + " where a name belongs"
	case errors.As(err, &syntax):
		return fmt.Sprintf("invalid JSON (at byte %d)", syntax.Offset)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "its end before it was complete"
	}
	return err.Error()
}
