// Package mapping has the mapping under which the tests of stores run. One variable runs them for another deployment.
package mapping

import (
	"encoding/json"
	"os"
	"slices"
	"sync"
	"time"
	_ "time/tzdata" // as the handler has it

	"sqlwriter/internal/invoice"
)

// Variable names the file of a mapping; without it the default is in use. Zone is the deployment's time zone.
const (
	Variable = "SQLWRITER_TEST_MAPPING"
	Zone     = "America/Chicago"
)

// InUse is the mapping of this process.
func InUse() *invoice.Mapping { return inUse() }

// Reader reads documents by the mapping in use.
func Reader() invoice.Reader { return invoice.Reader{Mapping: InUse()} }

var inUse = sync.OnceValue(func() *invoice.Mapping { //nolint:gochecknoglobals // a process has one
	if os.Getenv(Variable) == "" {
		return invoice.DefaultMapping()
	}
	return Read(fileInUse())
})

func fileInUse() []byte {
	path := os.Getenv(Variable)
	if path == "" {
		return invoice.DefaultFile()
	}
	file, err := os.ReadFile(path) //nolint:gosec // of whoever runs the tests
	if err != nil {
		panic(err)
	}
	return file
}

// Read reads a mapping of a deployment in Zone. It panics if the mapping is wrong.
func Read(file []byte) *invoice.Mapping {
	zone, err := time.LoadLocation(Zone)
	if err != nil {
		panic(err)
	}
	m, err := invoice.ReadMapping(file, zone)
	if err != nil {
		panic(err)
	}
	return m
}

// Place is the place in the mapping in use of the column that has the value of a column of the default mapping; -1 if
// none has.
func Place(table invoice.Table, name string) int {
	is := func(c invoice.Column) bool { return c.Table == table && c.Name == name }
	defaults := invoice.DefaultMapping().Columns()
	of := defaults[slices.IndexFunc(defaults, is)]
	return slices.IndexFunc(InUse().Columns(), func(c invoice.Column) bool {
		return c.Table == table && c.Source == of.Source && (len(of.Paths) == 0 || c.Reads(of.Paths[0]))
	})
}

// Of is the column in the mapping in use at Place, which has one.
func Of(table invoice.Table, name string) invoice.Column {
	return InUse().Columns()[Place(table, name)]
}

// Table is a table of a mapping's file.
type Table struct {
	Key     string  `json:"key"`
	Columns []Entry `json:"columns"`
}

// Entry is a column of a mapping's file.
type Entry map[string]any

// File is the file of the default mapping after an edit.
func File(edit func(tables map[invoice.Table]*Table)) []byte {
	return edited(invoice.DefaultFile(), edit)
}

func edited(file []byte, edit func(tables map[invoice.Table]*Table)) []byte {
	tables := map[invoice.Table]*Table{}
	if err := json.Unmarshal(file, &tables); err != nil {
		panic(err)
	}
	edit(tables)
	file, err := json.Marshal(tables)
	if err != nil {
		panic(err)
	}
	return file
}

// Edited is the default mapping after an edit.
func Edited(edit func(tables map[invoice.Table]*Table)) *invoice.Mapping { return Read(File(edit)) }

// Changed is the mapping in use after an edit.
func Changed(edit func(tables map[invoice.Table]*Table)) *invoice.Mapping {
	return Read(edited(fileInUse(), edit))
}

// Without is the mapping in use without a column.
func Without(table invoice.Table, name string) *invoice.Mapping {
	return Changed(func(tables map[invoice.Table]*Table) {
		t := tables[table]
		t.Columns = slices.DeleteFunc(t.Columns, func(e Entry) bool { return e["name"] == name })
	})
}

// Column is the entry of a column; nil if the table has none of the name.
func (t *Table) Column(name string) Entry {
	for _, e := range t.Columns {
		if e["name"] == name {
			return e
		}
	}
	return nil
}

// Rename is the edit that gives IVCE_TRKG_MSTR.RQST_TS another name, Renamed the default mapping after it.
func Rename(tables map[invoice.Table]*Table) {
	tables[invoice.Tracking].Column("RQST_TS")["name"] = "REQUEST_TIME"
}

// Renamed is described at Rename.
func Renamed() *invoice.Mapping { return Edited(Rename) }
