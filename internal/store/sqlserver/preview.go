package sqlserver

import (
	"database/sql"
	"fmt"
	"strconv"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/shared"
)

// currentValues reads the values that the lines of the request have now.
func currentValues(rows *sql.Rows, columns []invoice.Column) (map[int64][]invoice.Value, error) {
	if err := skipToSet(rows, setCurrent); err != nil {
		return nil, err
	}
	before := map[int64][]invoice.Value{}
	for rows.Next() {
		line, values, err := scanLine(rows, columns)
		if err != nil {
			return nil, err
		}
		before[line] = values
	}
	return before, rows.Err()
}

// scanLine reads a line's key and values.
func scanLine(rows *sql.Rows, columns []invoice.Column) (int64, []invoice.Value, error) {
	var line int64
	found := make([]any, len(columns))
	to := make([]any, 0, len(columns)+1)
	to = append(to, &line)
	for i := range found {
		to = append(to, &found[i])
	}
	if err := rows.Scan(to...); err != nil {
		return 0, nil, badAnswer("present values: %v", err)
	}
	values, err := canonicalRow(line, columns, found)
	return line, values, err
}

// canonicalRow makes the domain's values of a driver's row.
func canonicalRow(line int64, columns []invoice.Column, found []any) ([]invoice.Value, error) {
	values := make([]invoice.Value, len(columns))
	for i, c := range columns {
		v, err := canonical(c, found[i])
		if err != nil {
			return nil, fault.Wrap(fault.Internal, "sqlserver: read", fault.CodeBug,
				fmt.Sprintf("line %d: %s.%s has a value that is not a %s", line, c.Table, c.Name, c.Kind), err)
		}
		values[i] = v
	}
	return values, nil
}

// canonical makes the domain's value of a driver's value. The user's column may have any type that takes the kind.
func canonical(c invoice.Column, found any) (invoice.Value, error) {
	switch v := found.(type) {
	case nil:
		return invoice.Null(), nil
	case string:
		if c.Kind == invoice.Decimal {
			return shared.Decimal(c, v)
		}
		return invoice.Of(v), nil
	case []byte: // decimals and money
		if c.Kind == invoice.Decimal {
			return shared.Decimal(c, string(v))
		}
		return invoice.Of(string(v)), nil
	case int64:
		return number(c, strconv.FormatInt(v, 10))
	case float64:
		return number(c, strconv.FormatFloat(v, 'f', -1, 64))
	case bool:
		if v {
			return number(c, "1")
		}
		return number(c, "0")
	case time.Time:
		return invoice.Of(v.UTC().Format(timeForm(c))), nil
	}
	return invoice.Value{}, fmt.Errorf("type %T", found)
}

func number(c invoice.Column, text string) (invoice.Value, error) {
	if c.Kind == invoice.Decimal {
		return shared.Decimal(c, text)
	}
	return invoice.Of(text), nil
}
