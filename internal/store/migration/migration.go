// Package migration reads numbered schema files, compares them with those that a database has run, and runs the others.
// It knows no engine; each SQL adapter has its own files.
//
// Files only expand: they add tables, views and columns that may be NULL. So builds before and after a file work on
// the same schema, and a database may have files that this build does not know.
package migration

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"sqlwriter/internal/fault"
)

// File is one numbered file, such as 0001_schema.sql.
type File struct {
	// Number counts from 1 without a gap. Name is the file's name without .sql.
	Number int
	Name   string
	Text   string
	// Checksum is the SHA-256 of the text in lower-case hex. Line ends count as \n, because a checkout may change them.
	Checksum string
}

// Status compares a file with a database's record.
type Status string

const (
	// Applied means that this file was run.
	Applied Status = "applied"
	// Pending means that the file was not run yet.
	Pending Status = "pending"
	// Changed means that another text was run under this number. Nothing is run until a person has decided.
	Changed Status = "changed"
	// Unknown means that this build has no file of this number: a newer build has migrated the database.
	Unknown Status = "unknown"
)

// Done is one row of a database's record of files that were run.
type Done struct {
	Number         int
	Name, Checksum string
	At             time.Time
}

// State is the status of one file or record.
type State struct {
	Number int    `json:"number"`
	Name   string `json:"name"`
	Status Status `json:"status"`
	// At is when it was run; zero if it was not.
	At time.Time `json:"at,omitzero"`
}

// Read returns the files of a folder by number. Their names must start with 0001, 0002 and so on without a gap.
func Read(files fs.FS, dir string) ([]File, error) {
	paths, err := fs.Glob(files, path.Join(dir, "*.sql"))
	if err != nil {
		return nil, err
	}
	list := make([]File, 0, len(paths))
	for i, p := range paths { // Glob sorts
		text, err := fs.ReadFile(files, p)
		if err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(path.Base(p), ".sql")
		prefix, _, _ := strings.Cut(name, "_")
		if n, err := strconv.Atoi(prefix); err != nil || n != i+1 {
			return nil, fmt.Errorf("%s: expected number %04d", p, i+1)
		}
		list = append(list, New(i+1, name, string(text)))
	}
	return list, nil
}

// New makes a file and its checksum.
func New(number int, name, text string) File {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	sum := sha256.Sum256([]byte(text))
	return File{Number: number, Name: name, Text: text, Checksum: hex.EncodeToString(sum[:])}
}

// Compare returns the state of each file, then of each record that has no file, by number.
func Compare(files []File, done []Done) []State {
	recorded := make(map[int]Done, len(done))
	for _, d := range done {
		recorded[d.Number] = d
	}
	states := make([]State, 0, len(files))
	for _, f := range files {
		s := State{Number: f.Number, Name: f.Name, Status: Pending}
		if d, ok := recorded[f.Number]; ok {
			s.Status, s.At = Applied, d.At
			if d.Checksum != f.Checksum {
				s.Status = Changed
			}
		}
		states = append(states, s)
	}
	for _, d := range done {
		if d.Number > len(files) {
			states = append(states, State{Number: d.Number, Name: d.Name, Status: Unknown, At: d.At})
		}
	}
	return states
}

// Record is the table in which a database records the files that it has run.
type Record struct {
	// Op is the operation that errors name. Select gives number, name, checksum and applied_at of each file.
	Op, Select string
	// Run runs a file and records it.
	Run func(ctx context.Context, tx *sql.Tx, f File) error
}

// Migrate runs the files that were not run before. Errors by kind: infrastructure, with code "migration_checksum" if a
// file that was run differs; others as the database gives them.
func (r Record) Migrate(ctx context.Context, tx *sql.Tx, files []File) error {
	done, err := r.done(ctx, tx)
	if err != nil {
		return err
	}
	for i, state := range Compare(files, done) {
		switch state.Status {
		case Changed:
			return fault.New(fault.Infrastructure, r.Op, "migration_checksum",
				"%s: expected the file that was run, found another: a migration that was run must not be changed",
				state.Name)
		case Pending:
			if err := r.Run(ctx, tx, files[i]); err != nil {
				return fmt.Errorf("%s: %w", state.Name, err)
			}
		case Applied, Unknown:
		}
	}
	return nil
}

// Status compares the files with the record. Where there is no table, none was run.
func (r Record) Status(ctx context.Context, db Querier, files []File, there bool) ([]State, error) {
	if !there {
		return Compare(files, nil), nil
	}
	done, err := r.done(ctx, db)
	if err != nil {
		return nil, err
	}
	return Compare(files, done), nil
}

// Querier is a pool or a transaction.
type Querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// done reads the record.
func (r Record) done(ctx context.Context, db Querier) (done []Done, err error) {
	rows, err := db.QueryContext(ctx, r.Select)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var d Done
		var at any // a text where the engine has no type for times
		if err := rows.Scan(&d.Number, &d.Name, &d.Checksum, &at); err != nil {
			return nil, fmt.Errorf("scan: %w", err)
		}
		switch at := at.(type) {
		case time.Time:
			d.At = at
		default:
			if d.At, err = time.Parse(time.RFC3339, fmt.Sprint(at)); err != nil {
				return nil, fmt.Errorf("%s: applied_at: %w", d.Name, err)
			}
		}
		done = append(done, d)
	}
	return done, rows.Err()
}

// Count returns how many states have a status.
func Count(states []State, s Status) int {
	n := 0
	for _, st := range states {
		if st.Status == s {
			n++
		}
	}
	return n
}
