// Package fit asks, before anything is deployed, whether a mapping is right. The rows that the old writer made of its
// documents are the evidence: a row must have what the mapping would write. Nothing is written, nothing of ours must be
// there, and no value of a document or row is reported.
package fit

import (
	"context"
	"time"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
)

// Database has the user's tables.
type Database interface {
	// UserColumns reads the columns of both tables. A table that is missing, or that the login may not read, has none.
	UserColumns(ctx context.Context) (map[invoice.Table][]Column, error)
	// UserRows reads columns of the rows whose key is one of lines, at most 100.
	UserRows(ctx context.Context, table invoice.Table, key string, columns []string, lines []int64) ([]Row, error)
}

// Column is a column as the database has it, Type its type in the database's words.
type Column struct {
	Name, Type string
	// Fed: a row needs a value that somebody gives: it may not be NULL, and the server has none for it.
	Fed bool
	// Integer can be a key. Unique: an index lets no two rows have the same. Large is not read, unless the mapping has
	// the column.
	Integer, Unique, Large bool
	// Refuses says why the column does not take what a column of a mapping writes, and which type of a mapping it takes
	// in its place; both may be empty.
	Refuses func(invoice.Column) (says, takes string)
}

// Row is a row of one of the tables. Values are as the driver gives them, in the order of the columns asked for.
type Row struct {
	Line   int64
	Values []any
}

// Options say what is compared.
type Options struct {
	SysName string
	Reader  invoice.Reader
	// Zone is the deployment's time zone.
	Zone *time.Location
	// Keys are the members of the container's partition key. KeyProblem says why it cannot be used.
	Keys       []string
	KeyProblem string
	Now        time.Time
}

// Level says how much a finding matters.
type Level string

// The levels. What is Wrong keeps the app from writing a column right; a person must Look at what cannot be told.
const (
	Wrong Level = "wrong"
	Look  Level = "look"
	Note  Level = "note"
)

// Finding is one thing that was found. Where names a table and a column, or the container.
type Finding struct {
	Level Level  `json:"level"`
	Where string `json:"where"`
	Says  string `json:"says"`
}

// Compared is how a column of the mapping did.
type Compared struct {
	Table  invoice.Table `json:"table"`
	Column string        `json:"column"`
	From   string        `json:"from"`
	// Documents were read; There of them have a value, and of these the rules take that of Fits.
	Documents int `json:"documents"`
	There     int `json:"there"`
	Fits      int `json:"fits"`
	// Rows have a value or would get one, and Same of them have what would be written.
	Rows int `json:"rows"`
	Same int `json:"same"`
}

// Report is what was found.
type Report struct {
	Committed  int     `json:"committed"`
	Waiting    int     `json:"waiting"`
	Unreadable int     `json:"unreadable"`
	Charge     float64 `json:"request_units"`
	// Lines are those of committed documents, Rows those of them that have a row.
	Lines    int                   `json:"lines"`
	Rows     map[invoice.Table]int `json:"rows"`
	Columns  []Compared            `json:"columns"`
	Findings []Finding             `json:"findings"`

	mends mends
}

// Count is how many findings of a level there are.
func (r *Report) Count(l Level) (n int) {
	for _, f := range r.Findings {
		if f.Level == l {
			n++
		}
	}
	return n
}

// Check compares a sample of the documents with the rows. Errors are those of the ports.
func Check(ctx context.Context, documents commit.Finder, db Database, o Options) (*Report, error) {
	c := &check{
		Options: o, documents: documents, db: db, lines: map[int64]*sampled{},
		Report: &Report{Rows: map[invoice.Table]int{}, mends: mends{}},
	}
	if o.KeyProblem != "" {
		c.find(Wrong, container, "%s", o.KeyProblem)
	}
	tables, err := db.UserColumns(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.sample(ctx); err != nil {
		return nil, err
	}
	for _, table := range []invoice.Table{invoice.Detail, invoice.Tracking} {
		if err := c.table(ctx, table, tables[table]); err != nil {
			return nil, err
		}
	}
	c.unread()
	return c.Report, nil
}
