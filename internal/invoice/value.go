package invoice

import "strconv"

// normalise makes the column's value from a member. Absent and null are NULL unless the column requires a value.
func (c Column) normalise(span []byte) (Value, *FieldError) {
	if !given(span) {
		if c.Required {
			return Null(), refused("required", "a value, because NULL or '' would erase what the row says", span)
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

// flag makes the value of an indicator column: true, "Y", "y" and 1 are Y; false, "N", "n" and 0 are N.
func (c Column) flag(span []byte) (Value, *FieldError) {
	switch typeOf(span) {
	case jsonBool:
		if span[0] == 't' {
			return Of("Y"), nil
		}
		return Of("N"), nil
	case jsonNumber:
		switch v, ok := toInt64(parseNumber(span)); {
		case ok && v == 1:
			return Of("Y"), nil
		case ok && v == 0:
			return Of("N"), nil
		}
	case jsonText:
		switch text, _ := beginning(span, 2); text {
		case "Y", "y":
			return Of("Y"), nil
		case "N", "n":
			return Of("N"), nil
		}
	default:
	}
	return Null(), refused("flag", "true or false, Y or N, 1 or 0", span)
}

// RowValues returns the values of one line, aligned with Columns(): the document's values and the per-line columns.
// Missing entries of values count as NULL.
func RowValues(values []Value, main, detail int64) []Value {
	columns := compiled().columns
	row := make([]Value, len(columns))
	for i, c := range columns {
		row[i] = Null()
		switch c.Source {
		case FromParent:
			if detail != main {
				row[i] = Of(strconv.FormatInt(main, 10))
			}
		case FromDuplicate:
			row[i] = Of("N")
			if detail != main {
				row[i] = Of("Y")
			}
		case FromDocument, FromRequestTime:
			if i < len(values) {
				row[i] = values[i]
			}
		}
	}
	return row
}

// MarkValues returns the values of a failure mark, aligned with Columns(): IVCE_DTL.IVCE_LNE_STAT is AI-ERROR. All
// others are NULL, which here means not written.
func MarkValues() []Value {
	columns := compiled().columns
	mark := make([]Value, len(columns))
	for i, c := range columns {
		mark[i] = Null()
		if c.Table == Detail && c.Name == StatusColumn {
			mark[i] = Of(StatusAIError)
		}
	}
	return mark
}
