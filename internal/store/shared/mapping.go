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
	for _, recorded := range all {
		if recipe, ok := m.Recipe(recorded.Version, recorded.Lines); ok {
			r[recorded.Version] = &recipe
		}
	}
	return r, err
}

// Mappings returns the rows of the table of mappings. The one that was chosen last comes first.
func Mappings(ctx context.Context, db *sql.DB, table string) (all []invoice.Recorded, err error) {
	rows, err := db.QueryContext(ctx,
		"SELECT version, columns FROM "+table+" ORDER BY chosen_at DESC") //nolint:gosec // a constant of an engine
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // a failure is in rows.Err
	for rows.Next() {
		var one invoice.Recorded
		var text string
		if err := rows.Scan(&one.Version, &text); err != nil {
			return nil, fmt.Errorf("scan: %w", err)
		}
		if err := json.Unmarshal([]byte(text), &one.Lines); err != nil {
			return nil, fmt.Errorf("mapping %d: %w", one.Version, err)
		}
		all = append(all, one)
	}
	return all, rows.Err()
}

// MappingText is a mapping's lines as the table has them.
func MappingText(m *invoice.Mapping) string {
	text, err := json.Marshal(m.Lines())
	if err != nil {
		panic(err) // texts have no error
	}
	return string(text)
}
