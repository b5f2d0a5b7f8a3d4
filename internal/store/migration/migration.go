// Package migration reads numbered schema files and compares them with those that a database has run. It knows no
// database; each SQL adapter has its own files and runs them.
//
// Files only expand: they add tables, views and columns that may be NULL. So builds before and after a file work on
// the same schema, and a database may have files that this build does not know.
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
