package cosmossql

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"sqlwriter/test/emulators/cosmosdb/jsonval"
)

// Query is a parsed query. Bind gives it its parameters; a bound query is read by one goroutine at a time.
type Query struct {
	alias    string
	star     bool
	value    expr
	items    []item
	where    expr
	orderBy  []order
	top      expr
	offset   expr
	limit    expr
	distinct bool
	groupBy  bool
	// aggregate is set when the select list has COUNT, SUM, MIN, MAX or AVG.
	aggregate string
	// count is the argument of VALUE COUNT(...), the one aggregate that is evaluated.
	count expr

	params []paramRef
	binds  []binder
	env    env
}

// item is one entry of a select list.
type item struct {
	name string
	expr expr
}

type order struct {
	expr       expr
	descending bool
}

type paramRef struct {
	name       string
	start, end int
}

// binder is an expression with work to do once parameters are known.
type binder interface{ bind(*env) }

// Bind sets the parameters ("@name" -> value; an Undefined value is a parameter sent without one) and the
// clock of GetCurrentTimestamp. A parameter of the text that is not in the list is an *Error.
func (q *Query) Bind(params map[string]jsonval.Value, now time.Time) error {
	q.env = env{params: make([]jsonval.Value, len(q.params)), now: now}
	for i, ref := range q.params {
		v, ok := params[ref.name]
		if !ok {
			return &Error{
				Code: "SC2001", Start: ref.start, End: ref.end,
				Message: fmt.Sprintf("Parameter '%s' is used in the query but not given in 'parameters'.", ref.name),
			}
		}
		q.env.params[i] = v
	}
	for _, b := range q.binds {
		b.bind(&q.env)
	}
	return nil
}

// Matches reports whether WHERE is true for the document; a query without WHERE matches all.
func (q *Query) Matches(doc jsonval.Value) bool {
	if q.where == nil {
		return true
	}
	q.env.doc = doc
	return q.where.eval(&q.env).True()
}

// Project is the row that the select list makes of the document; Undefined means no row. Not for a query
// with VALUE COUNT.
func (q *Query) Project(doc jsonval.Value) jsonval.Value {
	q.env.doc = doc
	switch {
	case q.star:
		return doc
	case q.value != nil:
		return q.value.eval(&q.env)
	}
	names, values := make([]string, 0, len(q.items)), make([]jsonval.Value, 0, len(q.items))
	for _, it := range q.items {
		if v := it.expr.eval(&q.env); !v.IsUndefined() {
			names, values = append(names, it.name), append(values, v)
		}
	}
	return jsonval.OfObject(names, values)
}

// SelectsValue reports whether the select list is VALUE.
func (q *Query) SelectsValue() bool { return q.value != nil }

// OrderBy lists the paths of ORDER BY as an index policy writes them ("/a/b"), and which of them descend.
func (q *Query) OrderBy() (paths []string, descending []bool) {
	for _, o := range q.orderBy {
		path := ""
		if p, ok := o.expr.(*pathExpr); ok {
			path = "/" + strings.Join(p.names, "/")
		}
		paths, descending = append(paths, path), append(descending, o.descending)
	}
	return paths, descending
}

// GatewayRefusal gives the answer of the real gateway when the query is not limited to one partition key or
// range: plan is the construct it would have to merge ("" when none), and nonValueAggregate is set for the
// other refusal, of GROUP BY and of aggregates without VALUE (docs/facts.md F63).
func (q *Query) GatewayRefusal() (plan string, nonValueAggregate bool) {
	switch {
	case q.groupBy, q.aggregate != "" && q.value == nil:
		return "", true
	case q.aggregate != "":
		return q.aggregate, false
	case q.orderBy != nil:
		return "ORDER BY", false
	case q.top != nil:
		return "TOP", false
	case q.offset != nil:
		return "OFFSET LIMIT", false
	case q.distinct:
		return "DISTINCT", false
	default:
		return "", false
	}
}

// Unserved is an *Error when the query has a construct that is parsed only to be refused, nil otherwise.
func (q *Query) Unserved() error {
	refuse := func(what string) error {
		return &Error{Code: "EMULATOR", Message: what + " is not implemented by this emulator", NotImplemented: true}
	}
	switch {
	case q.groupBy:
		return refuse("GROUP BY")
	case q.distinct:
		return refuse("DISTINCT")
	case q.aggregate != "" && q.count == nil:
		return refuse(q.aggregate + " here (only SELECT VALUE COUNT(...))")
	case q.count != nil && (q.orderBy != nil || q.top != nil || q.offset != nil):
		return refuse("COUNT with ORDER BY, TOP or OFFSET")
	case q.top != nil && q.offset != nil:
		return refuse("TOP with OFFSET LIMIT")
	}
	return nil
}

// Collected reports whether the rows must be gathered before the first page (Collect), rather than page by
// page with Matches and Project.
func (q *Query) Collected() bool {
	return q.count != nil || q.orderBy != nil || q.top != nil || q.offset != nil
}

// Collect is the whole result over the matching documents: counted, or ordered and cut by TOP or OFFSET
// LIMIT.
func (q *Query) Collect(docs []jsonval.Value) ([]jsonval.Value, error) {
	if q.count != nil {
		n := int64(0)
		for _, d := range docs {
			q.env.doc = d
			if !q.count.eval(&q.env).IsUndefined() {
				n++
			}
		}
		return []jsonval.Value{jsonval.OfInt(n)}, nil
	}
	docs = q.sorted(docs)
	from, to := 0, len(docs)
	for _, bound := range []struct {
		expr expr
		name string
		set  func(n int)
	}{
		{q.top, "TOP", func(n int) { to = min(to, n) }},
		{q.offset, "OFFSET", func(n int) { from = min(to, n) }},
		{q.limit, "LIMIT", func(n int) { to = min(to, from+n) }},
	} {
		if bound.expr == nil {
			continue
		}
		n, err := q.bound(bound.expr, bound.name)
		if err != nil {
			return nil, err
		}
		bound.set(n)
	}
	rows := make([]jsonval.Value, 0, to-from)
	for _, d := range docs[from:to] {
		if row := q.Project(d); !row.IsUndefined() {
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// Top is the number of TOP; ok is false when the query has none. It is an *Error when the number cannot be one.
func (q *Query) Top() (n int, ok bool, err error) {
	if q.top == nil {
		return 0, false, nil
	}
	n, err = q.bound(q.top, "TOP")
	return n, true, err
}

func (q *Query) bound(e expr, name string) (int, error) {
	n, ok := e.eval(&q.env).Int()
	if !ok || n < 0 || n > 1<<31 {
		return 0, &Error{Code: "SC1001", Message: name + " wants a whole number that is not negative"}
	}
	return int(n), nil
}

// sorted is the documents in the order of ORDER BY; equal ones keep their order.
func (q *Query) sorted(docs []jsonval.Value) []jsonval.Value {
	if q.orderBy == nil {
		return docs
	}
	type keyed struct {
		doc  jsonval.Value
		keys []jsonval.Value
	}
	rows := make([]keyed, len(docs))
	for i, d := range docs {
		q.env.doc = d
		rows[i].doc = d
		for _, o := range q.orderBy {
			rows[i].keys = append(rows[i].keys, o.expr.eval(&q.env))
		}
	}
	slices.SortStableFunc(rows, func(a, b keyed) int {
		for i, o := range q.orderBy {
			if c := orderCompare(a.keys[i], b.keys[i]); c != 0 {
				if o.descending {
					return -c
				}
				return c
			}
		}
		return 0
	})
	out := make([]jsonval.Value, len(rows))
	for i, r := range rows {
		out[i] = r.doc
	}
	return out
}

// Constants finds the values that path must have for a document to match: WHERE must be a conjunction with
// `alias.path = constant` or `alias.path IN (constants)` in it. ok is false when it does not say.
func (q *Query) Constants(path ...string) (values []jsonval.Value, ok bool) {
	return q.constants(q.where, path)
}

func (q *Query) constants(e expr, path []string) ([]jsonval.Value, bool) {
	switch n := e.(type) {
	case *logical:
		if n.or {
			return nil, false
		}
		if v, ok := q.constants(n.left, path); ok {
			return v, true
		}
		return q.constants(n.right, path)
	case *compare:
		if n.op != "=" {
			return nil, false
		}
		for _, pair := range [][2]expr{{n.left, n.right}, {n.right, n.left}} {
			if isPath(pair[0], path) && isConstant(pair[1]) {
				return []jsonval.Value{pair[1].eval(&q.env)}, true
			}
		}
	case *in:
		if n.not || !isPath(n.needle, path) {
			return nil, false
		}
		var out []jsonval.Value
		for _, e := range n.list {
			if !isConstant(e) {
				return nil, false
			}
			out = append(out, e.eval(&q.env))
		}
		return out, true
	}
	return nil, false
}

func isPath(e expr, path []string) bool {
	p, ok := e.(*pathExpr)
	return ok && slices.Equal(p.names, path)
}

func isConstant(e expr) bool {
	switch e.(type) {
	case *literal, *param:
		return true
	default:
		return false
	}
}
