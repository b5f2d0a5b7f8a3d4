package expect

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The names of the tables in Tables. Ledger is the app's own table, the others are the user's.
const (
	Detail   = "IVCE_DTL"
	Tracking = "IVCE_TRKG_MSTR"
	Ledger   = "sqlwriter_ledger"
)

// Tables contains all rows of the three tables, by table name and line id.
type Tables map[string]map[int64]Row

// Keys are the key columns of the user's tables.
type Keys struct{ Detail, Tracking string }

// Read reads the three tables of a SQLite file, with one SELECT each.
func Read(ctx context.Context, db *sql.DB) (Tables, error) { return ReadBy(ctx, db, usualKeys()) }

func usualKeys() Keys { return Keys{"IVCE_DTL_UID", "IVCE_DTL_UID"} }

// ReadBy is Read of tables with other keys.
func ReadBy(ctx context.Context, db *sql.DB, keys Keys) (Tables, error) {
	all := Tables{}
	for table, key := range map[string]string{Detail: keys.Detail, Tracking: keys.Tracking, Ledger: "detail_id"} {
		rows, err := readTable(ctx, db, table, key)
		if err != nil {
			return nil, fmt.Errorf("expect: read %s: %w", table, err)
		}
		all[table] = rows
	}
	return all, nil
}

func readTable(ctx context.Context, db *sql.DB, table, key string) (map[int64]Row, error) {
	names, err := columns(ctx, db, table)
	if err != nil {
		return nil, err
	}
	keyIndex := slices.Index(names, key)
	if keyIndex < 0 {
		return nil, fmt.Errorf("no column %s among %s", key, strings.Join(names, ", "))
	}
	texts := make([]string, len(names))
	for i, n := range names {
		n = `"` + strings.ReplaceAll(n, `"`, `""`) + `"`
		texts[i] = `iif(typeof(` + n + `) = 'blob', lower(hex(` + n + `)), CAST(` + n + ` AS TEXT))`
	}
	found, err := db.QueryContext(ctx, "SELECT "+strings.Join(texts, ", ")+" FROM "+table) //nolint:gosec // names come from the database's own catalogue
	if err != nil {
		return nil, err
	}
	defer found.Close() //nolint:errcheck // rows.Err below says what matters
	rows := map[int64]Row{}
	for found.Next() {
		cells := make([]sql.NullString, len(names))
		into := make([]any, len(names))
		for i := range cells {
			into[i] = &cells[i]
		}
		if err := found.Scan(into...); err != nil {
			return nil, err
		}
		line, err := strconv.ParseInt(cells[keyIndex].String, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s %q: %w", key, cells[keyIndex].String, err)
		}
		if rows[line] != nil {
			return nil, fmt.Errorf("line %d is there twice", line)
		}
		row := Row{}
		for i, n := range names {
			row[n] = nil
			if cells[i].Valid {
				row[n] = &cells[i].String
			}
		}
		rows[line] = row
	}
	return rows, found.Err()
}

func columns(ctx context.Context, db *sql.DB, table string) ([]string, error) {
	rows, err := db.QueryContext(ctx, "SELECT name FROM pragma_table_info(?)", table)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // rows.Err below says what matters
	var names []string
	for rows.Next() {
		var n string
		if err := rows.Scan(&n); err != nil {
			return nil, err
		}
		names = append(names, n)
	}
	return names, rows.Err()
}
