package invoice

import (
	"bytes"
	_ "embed"
	"strings"
	"sync"
	"time"

	"sqlwriter/internal/fault"
)

// defaultFile is the mapping of a deployment that names none.
//
//go:embed mapping.json
var defaultFile []byte

// Mapping says which value of a document goes into which column of the user's tables: validation, statements and the
// checks at the start follow from it. It never changes, and is safe for concurrent use. A nil Mapping is
// DefaultMapping.
type Mapping struct {
	columns []Column
	keys    map[Table]string
	plan    *plan
	// lines are the columns as far as they decide stored values, in the order of places.
	lines []string
	own   Recipe
}

// DefaultFile is the file of the default mapping.
func DefaultFile() []byte { return bytes.Clone(defaultFile) }

// DefaultMapping is the mapping of a deployment that names no file.
func DefaultMapping() *Mapping { return defaultMapping() }

var defaultMapping = sync.OnceValue(func() *Mapping { //nolint:gochecknoglobals // made once from a constant file
	m, err := ReadMapping(defaultFile, time.UTC)
	if err != nil {
		panic(err) // a test reads the file
	}
	return m
})

// ReadMapping reads a file of columns (docs/rules.md has its members). zone is the deployment's time zone, for times
// that are written or read in it. The order of the file is the order of Columns.
//
// Errors by kind: infrastructure, code "settings", with all problems as the reason. A reason names tables, columns and
// members, and repeats nothing else of a file that is not JSON: the setting may name a file of another kind.
func ReadMapping(file []byte, zone *time.Location) (*Mapping, error) {
	r := mappingReader{zone: zone, m: &Mapping{keys: map[Table]string{}}}
	r.read(file)
	if len(r.problems) > 0 {
		return nil,
			fault.New(fault.Infrastructure, "invoice: mapping", "settings", "%s", strings.Join(r.problems, "; "))
	}
	r.m.plan = newPlan(r.m.columns)
	r.m.own = newRecipe(r.m)
	return r.m, nil
}

func (m *Mapping) orDefault() *Mapping {
	if m == nil {
		return DefaultMapping()
	}
	return m
}

// Columns are the columns of both tables. Their order is that of Document.Values and of every statement. Callers do not
// change them.
func (m *Mapping) Columns() []Column { return m.orDefault().columns }

// Key is the name of a table's key column.
func (m *Mapping) Key(t Table) string { return m.orDefault().keys[t] }

// Version is the version of the hashes: a fingerprint of what decides a stored value. It is in the ledger beside each
// hash. What only refuses documents, the order of the file and its texts for people do not count.
func (m *Mapping) Version() int { return m.orDefault().own.version }

// Lines are the columns as far as Version counts them, one text each and sorted: what a database keeps of a version.
func (m *Mapping) Lines() []string { return m.orDefault().lines }

// Status is the name of the status column of a table; empty if a mapping gives the table none.
func (m *Mapping) Status(t Table) string {
	for _, c := range m.Columns() {
		if c.Table == t && c.Status {
			return c.Name
		}
	}
	return ""
}

// Members lists the top-level members that a Reader uses, sorted. A query needs no others.
func (m *Mapping) Members() []string { return m.orDefault().plan.members() }
