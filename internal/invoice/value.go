package invoice

import (
	"encoding/json"
	"strconv"
)

// normalise makes the column's value from a member. Absent and null are NULL unless the column requires a value. Where
// only a rule of the column refuses a value, it comes with the refusal.
func (c Column) normalise(span []byte) (Value, *FieldError) {
	if !given(span) {
		if c.Required {
			return Null(), ruled(required(span))
		}
		return Null(), nil
	}
	switch c.Kind {
	case Text:
		return c.text(span)
	case Integer, Decimal:
		return c.quantity(span)
	case Flag:
		return c.flag(span)
	case Time:
		return c.moment(span)
	}
	return Null(), refused("kind", "a column of a known kind", span)
}

// ValueOf makes the column's value of a member; ok is false if the rules refuse it.
func (c Column) ValueOf(member json.RawMessage) (v Value, ok bool) {
	v, refusal := c.normalise(member)
	return v, refusal == nil
}

func required(span []byte) *FieldError {
	return refused("required", "a value, because NULL or '' would erase what the row says", span)
}

// flag makes the value of an indicator column: true, "Y", "y", 1 and the column's own text are yes; false, "N", "n", 0
// and its own text are no.
func (c Column) flag(span []byte) (Value, *FieldError) {
	yes, no := Of(c.Flags[0]), Of(c.Flags[1])
	switch typeOf(span) {
	case jsonBool:
		if span[0] == 't' {
			return yes, nil
		}
		return no, nil
	case jsonNumber:
		switch v, ok := toInt64(parseNumber(span)); {
		case ok && v == 1:
			return yes, nil
		case ok && v == 0:
			return no, nil
		}
	case jsonText:
		switch text, _ := beginning(span, maxFlag+1); text {
		case c.Flags[0]:
			return yes, nil
		case c.Flags[1]:
			return no, nil
		case "Y", "y":
			return yes, nil
		case "N", "n":
			return no, nil
		}
	default:
	}
	return Null(), refused("flag", "true or false, Y or N, 1 or 0", span)
}

// RowValues returns the values of one line, aligned with Columns: the document's values and the per-line columns.
// Missing entries of values count as NULL.
func (m *Mapping) RowValues(values []Value, main, detail int64) []Value {
	columns := m.Columns()
	row := make([]Value, len(columns))
	for i, c := range columns {
		row[i] = Null()
		switch c.Source {
		case FromParent:
			if detail != main {
				row[i] = Of(strconv.FormatInt(main, 10))
			}
		case FromDuplicate:
			row[i] = Of(c.Flags[1])
			if detail != main {
				row[i] = Of(c.Flags[0])
			}
		case FromDocument, FromMapping, FromRequestTime:
			if i < len(values) {
				row[i] = values[i]
			}
		}
	}
	return row
}

// MarkValues returns the values of a failure mark, aligned with Columns: the status of IVCE_DTL is AI-ERROR. All others
// are NULL, which here means not written.
func (m *Mapping) MarkValues() []Value {
	columns := m.Columns()
	mark := make([]Value, len(columns))
	for i, c := range columns {
		mark[i] = Null()
		if c.Table == Detail && c.Status {
			mark[i] = Of(StatusAIError)
		}
	}
	return mark
}
