package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"sqlwriter/internal/app/open"
	"sqlwriter/internal/invoice"
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
	if migration.Count(states, migration.Applied) == 0 {
		return m, nil
	}
	all, err := db.Mappings(ctx)
	if len(all) > 0 {
		m.Chosen, m.before = all[0].Version, all[0].Lines
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
	rows := [][]string{{"COLUMN", "WITH THE NEW MAPPING"}}
	gone, new := invoice.Without(m.before, m.now), invoice.Without(m.now, m.before)
	for _, column := range gone {
		what := "goes"
		if slices.Contains(new, column) {
			what = "changes"
		}
		rows = append(rows, []string{column, what})
	}
	for _, column := range new {
		if !slices.Contains(gone, column) {
			rows = append(rows, []string{column, "comes"})
		}
	}
	return rows
}
