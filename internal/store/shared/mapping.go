package shared

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"sqlwriter/internal/invoice"
)

// Recipes are those that a mapping has, by version: its own, and those of earlier versions that it can compare.
type Recipes map[int]*invoice.Recipe

// ReadRecipes reads the table of mappings, which has a row for each version that a migration chose. They are a few.
func ReadRecipes(ctx context.Context, db *sql.DB, table string, m *invoice.Mapping) (r Recipes, err error) {
	own, _ := m.Recipe(m.Version(), nil)
	r = Recipes{m.Version(): &own}
	all, err := Mappings(ctx, db, table)
	for version, lines := range all {
		if recipe, ok := m.Recipe(version, lines); ok {
			r[version] = &recipe
		}
	}
	return r, err
}

// Mappings returns the lines of each version in the table.
func Mappings(ctx context.Context, db *sql.DB, table string) (map[int][]string, error) {
	all := map[int][]string{}
	err := eachMapping(ctx, db, table, func(version int, lines []string) { all[version] = lines })
	return all, err
}

func eachMapping(ctx context.Context, db *sql.DB, table string, each func(version int, lines []string)) error {
	rows, err := db.QueryContext(ctx, "SELECT version, columns FROM "+table+" ORDER BY chosen_at DESC")
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // a failure is in rows.Err
	for rows.Next() {
		var version int
		var text string
		var lines []string
		if err := rows.Scan(&version, &text); err != nil {
			return fmt.Errorf("scan: %w", err)
		}
		if err := json.Unmarshal([]byte(text), &lines); err != nil {
			return fmt.Errorf("mapping %d: %w", version, err)
		}
		each(version, lines)
	}
	return rows.Err()
}

// MappingText is a mapping's lines as the table has them.
func MappingText(m *invoice.Mapping) string {
	text, err := json.Marshal(m.Lines())
	if err != nil {
		panic(err) // texts have no error
	}
	return string(text)
}

// Chosen returns the version and the lines of the mapping that the last migration chose; 0 if none did.
func Chosen(ctx context.Context, db *sql.DB, table string) (version int, lines []string, err error) {
	err = eachMapping(ctx, db, table, func(v int, l []string) {
		if version == 0 {
			version, lines = v, l
		}
	})
	return version, lines, err
}
