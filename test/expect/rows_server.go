package expect

import (
	"context"
	"database/sql"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ReadServer reads the three tables of a SQL Server, with one SELECT each. The result has the table names and the text
// form of values of Read.
func ReadServer(ctx context.Context, db *sql.DB) (Tables, error) {
	return ReadServerBy(ctx, db, usualKeys())
}

// ReadServerBy is ReadServer of tables with other keys.
func ReadServerBy(ctx context.Context, db *sql.DB, keys Keys) (Tables, error) {
	all := Tables{}
	for table, at := range map[string]struct{ name, key string }{
		Detail: {"dbo.IVCE_DTL", keys.Detail}, Tracking: {"dbo.IVCE_TRKG_MSTR", keys.Tracking},
		Ledger: {"sqlwriter.ledger", "detail_id"},
	} {
		rows, err := readServerTable(ctx, db, at.name, at.key)
		if err != nil {
			return nil, fmt.Errorf("expect: read %s: %w", at.name, err)
		}
		all[table] = rows
	}
	return all, nil
}

func readServerTable(ctx context.Context, db *sql.DB, table, key string) (map[int64]Row, error) {
	found, err := db.QueryContext(ctx, "SELECT * FROM "+table) //nolint:gosec // one of three constants
	if err != nil {
		return nil, err
	}
	defer found.Close() //nolint:errcheck // rows.Err below says what matters
	columns, err := found.ColumnTypes()
	if err != nil {
		return nil, err
	}
	cells, into := make([]any, len(columns)), make([]any, len(columns))
	for i := range cells {
		into[i] = &cells[i]
	}
	rows := map[int64]Row{}
	for found.Next() {
		if err := found.Scan(into...); err != nil {
			return nil, err
		}
		row := Row{}
		for i, c := range columns {
			if row[c.Name()], err = cellText(c.DatabaseTypeName(), cells[i]); err != nil {
				return nil, fmt.Errorf("column %s: %w", c.Name(), err)
			}
		}
		if row[key] == nil {
			return nil, fmt.Errorf("a row without %s among %d columns", key, len(row))
		}
		line, err := strconv.ParseInt(*row[key], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		if rows[line] != nil {
			return nil, fmt.Errorf("line %d is there twice", line)
		}
		rows[line] = row
	}
	return rows, found.Err()
}

// cellText converts a cell to the text form of the mapping. The driver gives decimals and binaries as bytes.
func cellText(kind string, v any) (*string, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil //nolint:nilnil // NULL
	case int64:
		return just(strconv.FormatInt(v, 10)), nil
	case string:
		return just(v), nil
	case time.Time:
		return just(inUTC(v)), nil
	case []byte:
		if kind == "DECIMAL" || strings.HasSuffix(kind, "MONEY") {
			return just(string(v)), nil
		}
		return just(hex.EncodeToString(v)), nil
	}
	return nil, fmt.Errorf("a %s that came as %T", kind, v)
}
