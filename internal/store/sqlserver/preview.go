package sqlserver

import (
	"database/sql"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// currentValues reads the values that the lines of the request have now.
func currentValues(rows *sql.Rows) (map[int64][]invoice.Value, error) {
	if err := skipToSet(rows, setCurrent); err != nil {
		return nil, err
	}
	before := map[int64][]invoice.Value{}
	for rows.Next() {
		line, values, err := scanLine(rows, invoice.Columns())
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
	values := make([]invoice.Value, len(columns))
	for i, c := range columns {
		v, err := canonical(c, found[i])
		if err != nil {
			return 0, nil, fault.Wrap(fault.Internal, "sqlserver: read", "type",
				fmt.Sprintf("line %d: %s.%s has a value that is not a %s", line, c.Table, c.Name, c.Kind), err)
		}
		values[i] = v
	}
	return line, values, nil
}

// canonical makes the domain's value of a driver's value. The user's column may have any type that takes the kind.
func canonical(c invoice.Column, found any) (invoice.Value, error) {
	switch v := found.(type) {
	case nil:
		return invoice.Null(), nil
	case string:
		if c.Kind == invoice.Decimal {
			return decimal(c, v)
		}
		return invoice.Of(v), nil
	case []byte: // decimals and money
		if c.Kind == invoice.Decimal {
			return decimal(c, string(v))
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
		return invoice.Of(v.UTC().Format("2006-01-02T15:04:05.000000Z")), nil
	}
	return invoice.Value{}, fmt.Errorf("type %T", found)
}

func number(c invoice.Column, text string) (invoice.Value, error) {
	if c.Kind == invoice.Decimal {
		return decimal(c, text)
	}
	return invoice.Of(text), nil
}

// decimal gives a number the column table's scale. It keeps digits beyond the scale, because they differ from any
// value that we write.
func decimal(c invoice.Column, text string) (invoice.Value, error) {
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return invoice.Value{}, fmt.Errorf("%d characters that are not a number", len(text))
	}
	short := r.FloatString(c.Scale)
	if again, ok := new(big.Rat).SetString(short); ok && again.Cmp(r) == 0 {
		return invoice.Of(short), nil
	}
	return invoice.Of(strings.TrimRight(text, "0")), nil
}
