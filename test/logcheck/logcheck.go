// Package logcheck compares lines of the log with the table of events.
package logcheck

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"sqlwriter/internal/events"
)

// everywhere are the members that the table does not list for each event.
func everywhere() []string {
	return []string{"level", "time", "event", "message", "function", "invocation", "run", "batch"}
}

// Line says how a line differs from the table: nil for an event of the table with its level, its message and no other members than its own.
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

// Lines fails the test for each line that differs.
func Lines(t testing.TB, log []byte) {
	t.Helper()
	for line := range bytes.Lines(log) {
		if err := Line(line); err != nil {
			t.Error(err)
		}
	}
}
