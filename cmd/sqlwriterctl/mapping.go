package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sqlwriter/internal/app/open"
	"sqlwriter/internal/store/migration"
)

// shownMapping is the mapping that the last migration chose, and the one of the settings.
type shownMapping struct {
	// Chosen is 0 if no migration has chosen one.
	Chosen  int `json:"chosen,omitempty"`
	Version int `json:"version"`

	before, now []string
}

// chosenMapping reads the chosen mapping of a database that has a table for it.
func chosenMapping(ctx context.Context, db *open.Database, states []migration.State) (m shownMapping, err error) {
	m.Version, m.now = db.Mapping.Version(), db.Mapping.Lines()
	if migration.Count(states, migration.Applied) > 0 {
		m.Chosen, m.before, err = db.ChosenMapping(ctx)
	}
	return m, err
}

// other reports whether another mapping is chosen.
func (m shownMapping) other() bool { return m.Chosen != 0 && m.Chosen != m.Version }

func (m shownMapping) chosen() string {
	if m.Chosen == 0 {
		return "none yet"
	}
	return "version " + strconv.Itoa(m.Chosen)
}

func (m shownMapping) refusal() error {
	return advised(
		fmt.Errorf("the database has another mapping: version %d is chosen, this one is %d; lines of a version that lost or changed a column become not_comparable (docs/rules.md, Columns)",
			m.Chosen, m.Version),
		"`sqlwriterctl migrate up --new-mapping` chooses this one on purpose; if it is not meant, set MAPPING")
}

// changes is a table of the columns that come, go or change from the chosen mapping to this one.
func (m shownMapping) changes() [][]string {
	rows := [][]string{{"TABLE", "COLUMN", "WITH THE NEW MAPPING"}}
	before, now := columnsOf(m.before), columnsOf(m.now)
	all := maps.Clone(before)
	maps.Copy(all, now)
	for _, at := range slices.SortedFunc(maps.Keys(all), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		was, is := before[at], now[at]
		what := ""
		switch {
		case was == nil:
			what = "comes"
		case is == nil:
			what = "goes"
		default:
			what = changed(was, is)
		}
		if what != "" {
			rows = append(rows, []string{at[0], at[1], what})
		}
	}
	return rows
}

// columnsOf reads a mapping's lines, by table and name.
func columnsOf(lines []string) map[[2]string]map[string]json.RawMessage {
	all := map[[2]string]map[string]json.RawMessage{}
	for _, line := range lines {
		var name struct{ Table, Name string }
		var members map[string]json.RawMessage
		if json.Unmarshal([]byte(line), &name) == nil && json.Unmarshal([]byte(line), &members) == nil {
			all[[2]string{name.Table, name.Name}] = members
		}
	}
	return all
}

// changed names the members that differ; empty if none does.
func changed(was, is map[string]json.RawMessage) string {
	all := maps.Clone(was)
	maps.Copy(all, is)
	maps.DeleteFunc(all, func(name string, _ json.RawMessage) bool { return string(was[name]) == string(is[name]) })
	if len(all) == 0 {
		return ""
	}
	return "changes: " + strings.Join(slices.Sorted(maps.Keys(all)), ", ")
}
