package shared

import (
	"database/sql"

	"sqlwriter/internal/fault"
)

// ParameterType is the type of a statement's parameter: that of every column that the statement compares it with or
// writes it to. With another type a server converts the column, and so reads the whole table for one row.
type ParameterType string

// Code is a text in ASCII, such as an id or a status. Text may have any letters, and LongText any length. Bytes are a
// hash or several. Number is a whole number or a boolean.
const (
	Code     ParameterType = "varchar"
	Text     ParameterType = "nvarchar"
	LongText ParameterType = "nvarchar(max)"
	Bytes    ParameterType = "binary"
	Number   ParameterType = "bigint"
)

// TypeOf is the type of a parameter by its name; "" for an unknown one.
func TypeOf(parameter string) ParameterType {
	switch parameter {
	case "after", "batch", "before_run", "class", "id", "level", "owner", "run", "status":
		return Code
	case "action", "by", "cancelled", "error", "given_up", "instance", "kind", "outcomes", "reason",
		"subject", "sys_name", "why":
		return Text
	case "counts", "detail", "filter", "position", "request", "rows", "watermark":
		return LongText
	case "after_key", "hashes", "key":
		return Bytes
	case "at_least", "attempt", "batches", "before", "bound", "counted", "documents", "ended", "epoch",
		"failure", "first", "from",
		"limit", "line", "matched", "mends", "most", "named", "night", "rate", "released", "shown", "silent",
		"stale", "step", "success",
		"suspects", "to", "wait":
		return Number
	}
	return ""
}

// bind gives each text the type of its parameter. Errors by kind: internal, code "bug", for a value of another
// type.
func (s *statements) bind(args []any) ([]any, error) {
	bound := make([]any, len(args))
	for i, a := range args {
		named, _ := a.(sql.NamedArg)
		of, fits := TypeOf(named.Name), false
		switch v := named.Value.(type) {
		case string:
			fits = of == Code || of == Text || of == LongText
			named.Value = s.engine.Bind(of, v)
		case []byte:
			fits = of == Bytes
		case int64:
			fits = of == Number
		}
		if !fits {
			return nil,
				fault.New(fault.Internal, opEncode, fault.CodeBug, "@%s: expected a value of type %q, found %T",
					named.Name, of, named.Value)
		}
		bound[i] = named
	}
	return bound, nil
}
