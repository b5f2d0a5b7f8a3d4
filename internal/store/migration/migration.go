// Package migration reads numbered schema files and tells which of them a database has. It knows no database: each SQL
// adapter has its own files and runs them in its own way.
//
// Files only expand (new tables, new columns that may be NULL, new views): builds before and after a file run together on
// the result, and a database that knows more than this build is fine.
package migration

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"
)

// File is one numbered file: 0001_ledger.sql.
type File struct {
	// Number counts from 1 without a gap; Name is the file's without .sql.
	Number int
	Name   string
	Text   string
	// Checksum is the lower-case hex SHA-256 of the text with line ends as \n, whatever a checkout made of them.
	Checksum string
}

// Status is what a database says of a file.
type Status string

// The statuses.
const (
	// Applied: it was run, and it is this very file.
	Applied Status = "applied"
	// Pending: it was not run yet.
	Pending Status = "pending"
	// Changed: it was run, and the file was another. Nothing is run until somebody has looked.
	Changed Status = "changed"
	// Unknown: the database has a number that this build has no file for: a newer build was here.
	Unknown Status = "unknown"
)

// Done is one row of a database's own record.
type Done struct {
	Number         int
	Name, Checksum string
	At             time.Time
}

// State is one file or record and its status.
type State struct {
	Number int
	Name   string
	Status Status
	// At is when it was run; zero when it was not.
	At time.Time
}

// Read gives the files of a folder, which must be numbered 1, 2, 3 ... in their names' first four digits.
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

// New makes a file.
func New(number int, name, text string) File {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	sum := sha256.Sum256([]byte(text))
	return File{Number: number, Name: name, Text: text, Checksum: hex.EncodeToString(sum[:])}
}

// Compare puts files and a database's record side by side, by number.
func Compare(files []File, done []Done) []State {
	was := make(map[int]Done, len(done))
	for _, d := range done {
		was[d.Number] = d
	}
	states := make([]State, 0, len(files))
	for _, f := range files {
		s := State{Number: f.Number, Name: f.Name, Status: Pending}
		if d, ok := was[f.Number]; ok {
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

// Count tells how many states have a status.
func Count(states []State, s Status) int {
	n := 0
	for _, st := range states {
		if st.Status == s {
			n++
		}
	}
	return n
}
