// Package logcheck compares lines of the log with the table of events.
package logcheck

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/rs/zerolog"

	"sqlwriter/internal/events"
)

// everywhere are the members that the table does not list for each event.
func everywhere() []string {
	return []string{
		"level", "time", "event", "message", "function", "invocation", "run", "batch", "condition", "severity",
	}
}

// Line says how a line differs from the table: nil for an event of the table with its level, its message and no other
// members than its own.
func Line(line []byte) error {
	var members map[string]any
	if err := json.Unmarshal(line, &members); err != nil {
		return fmt.Errorf("not a line of JSON: %w: %s", err, line)
	}
	all := events.Table()
	i := slices.IndexFunc(all, func(r events.Row) bool { return string(r.Name) == members["event"] })
	if i < 0 {
		return fmt.Errorf("no event of the table: %s", line)
	}
	row := all[i]
	if members["level"] != row.Level.String() || members["message"] != row.Says {
		return fmt.Errorf("%s has another level or message than the table says: %s", row.Name, line)
	}
	for name := range members {
		if !slices.Contains(everywhere(), name) && !slices.Contains(row.Fields, name) {
			return fmt.Errorf("the table does not list %s for %s: %s", name, row.Name, line)
		}
	}
	return nil
}

// Level is the level that the host must see of a line of the table.
func Level(line []byte) (zerolog.Level, error) {
	var l struct{ Event events.Name }
	if err := errors.Join(Line(line), json.Unmarshal(line, &l)); err != nil {
		return zerolog.NoLevel, err
	}
	all := events.Table()
	i := slices.IndexFunc(all, func(r events.Row) bool { return r.Name == l.Event })
	return max(all[i].Level, zerolog.InfoLevel), nil // stdout is information (docs/facts.md F26)
}

// Writer returns a log that fails the test for each line that differs.
func Writer(t interface {
	Errorf(format string, args ...any)
},
) io.Writer {
	return writer(func(line []byte) {
		if err := Line(line); err != nil {
			t.Errorf("%v", err)
		}
	})
}

type writer func(line []byte)

func (w writer) Write(line []byte) (int, error) {
	w(line)
	return len(line), nil
}

// Lines fails the test for each line that differs.
func Lines(t testing.TB, log []byte) {
	t.Helper()
	for line := range bytes.Lines(log) {
		if err := Line(line); err != nil {
			t.Error(err)
		}
	}
}
