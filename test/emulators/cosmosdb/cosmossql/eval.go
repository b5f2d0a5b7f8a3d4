package cosmossql

import (
	"cmp"
	"math"
	"strings"
	"time"

	"sqlwriter/test/emulators/cosmosdb/jsonval"
)

// env is what an expression is evaluated over.
type env struct {
	doc    jsonval.Value
	params []jsonval.Value
	now    time.Time
}

// expr is a scalar expression; it answers Undefined where the language does.
type expr interface{ eval(*env) jsonval.Value }

type literal struct{ value jsonval.Value }

func (l *literal) eval(*env) jsonval.Value { return l.value }

type param struct{ index int }

func (p *param) eval(e *env) jsonval.Value { return e.params[p.index] }

// pathExpr is the alias, or member names followed from it.
type pathExpr struct{ names []string }

func (p *pathExpr) eval(e *env) jsonval.Value { return e.doc.Path(p.names...) }

// index is base[key] where the base or the key is not a plain path.
type index struct{ base, key expr }

func (x *index) eval(e *env) jsonval.Value {
	base, key := x.base.eval(e), x.key.eval(e)
	switch key.Kind() {
	case jsonval.String:
		return base.Get(key.Text())
	case jsonval.Number:
		if n, ok := key.Int(); ok && n >= 0 && n <= math.MaxInt32 {
			return base.At(int(n))
		}
	default:
	}
	return jsonval.Value{}
}

type objectLiteral struct {
	names  []string
	values []expr
}

func (o *objectLiteral) eval(e *env) jsonval.Value {
	var names []string
	var values []jsonval.Value
	for i, n := range o.names {
		if v := o.values[i].eval(e); !v.IsUndefined() {
			names, values = append(names, n), append(values, v)
		}
	}
	return jsonval.OfObject(names, values)
}

type arrayLiteral struct{ elements []expr }

// eval keeps the place of a missing element as null, as the real account did.
func (a *arrayLiteral) eval(e *env) jsonval.Value {
	values := make([]jsonval.Value, len(a.elements))
	for i, x := range a.elements {
		if values[i] = x.eval(e); values[i].IsUndefined() {
			values[i] = jsonval.NullValue()
		}
	}
	return jsonval.OfArray(values)
}

// logical is AND or OR: one decisive operand decides even beside an undefined one.
type logical struct {
	or          bool
	left, right expr
}

func (l *logical) eval(e *env) jsonval.Value {
	a := l.left.eval(e)
	if a.Kind() == jsonval.Bool && a.True() == l.or {
		return a
	}
	b := l.right.eval(e)
	switch {
	case b.Kind() == jsonval.Bool && b.True() == l.or:
		return b
	case a.Kind() == jsonval.Bool && b.Kind() == jsonval.Bool:
		return jsonval.OfBool(!l.or)
	default:
		return jsonval.Value{}
	}
}

type not struct{ operand expr }

func (n *not) eval(e *env) jsonval.Value { return negate(n.operand.eval(e)) }

func negate(v jsonval.Value) jsonval.Value {
	if v.Kind() != jsonval.Bool {
		return jsonval.Value{}
	}
	return jsonval.OfBool(!v.True())
}

type compare struct {
	op          string
	left, right expr
}

func (c *compare) eval(e *env) jsonval.Value {
	return compareValues(c.op, c.left.eval(e), c.right.eval(e))
}

// compareValues follows the vendor's table: two types, or a missing value, are undefined; objects and
// arrays know equality only.
func compareValues(op string, a, b jsonval.Value) jsonval.Value {
	if a.Kind() != b.Kind() || a.IsUndefined() {
		return jsonval.Value{}
	}
	switch op {
	case "=":
		return jsonval.OfBool(jsonval.Equal(a, b))
	case "!=":
		return jsonval.OfBool(!jsonval.Equal(a, b))
	}
	if a.Kind() == jsonval.Object || a.Kind() == jsonval.Array {
		return jsonval.Value{}
	}
	c := orderCompare(a, b)
	switch op {
	case "<":
		return jsonval.OfBool(c < 0)
	case "<=":
		return jsonval.OfBool(c <= 0)
	case ">":
		return jsonval.OfBool(c > 0)
	default:
		return jsonval.OfBool(c >= 0)
	}
}

// orderCompare orders values of any types: by type (undefined, null, booleans, numbers, strings, arrays,
// objects, the order of the vendor's ORDER BY page), then by value.
func orderCompare(a, b jsonval.Value) int {
	if a.Kind() != b.Kind() {
		return cmp.Compare(a.Kind(), b.Kind())
	}
	switch a.Kind() {
	case jsonval.Bool:
		switch {
		case a.True() == b.True():
			return 0
		case b.True():
			return -1
		default:
			return 1
		}
	case jsonval.Number:
		return cmp.Compare(a.Float(), b.Float())
	case jsonval.String:
		return strings.Compare(a.Text(), b.Text())
	default:
		return 0
	}
}

type between struct {
	not            bool
	value, low, up expr
}

func (b *between) eval(e *env) jsonval.Value {
	v := b.value.eval(e)
	both := &logical{
		left:  &literal{compareValues(">=", v, b.low.eval(e))},
		right: &literal{compareValues("<=", v, b.up.eval(e))},
	}
	if b.not {
		return negate(both.eval(e))
	}
	return both.eval(e)
}

// in is IN and NOT IN. Constant strings are looked up in a set, so that ReadMany's thousand ids cost one
// lookup per document.
type in struct {
	not    bool
	needle expr
	list   []expr
	set    map[string]struct{}
	rest   []expr
}

func (n *in) bind(e *env) {
	n.set, n.rest = make(map[string]struct{}, len(n.list)), nil
	for _, x := range n.list {
		if isConstant(x) {
			if v := x.eval(e); v.Kind() == jsonval.String {
				n.set[v.Text()] = struct{}{}
				continue
			}
		}
		n.rest = append(n.rest, x)
	}
}

func (n *in) eval(e *env) jsonval.Value {
	v := n.needle.eval(e)
	if v.IsUndefined() {
		return v
	}
	found := false
	if v.Kind() == jsonval.String {
		_, found = n.set[v.Text()]
	}
	for i := 0; i < len(n.rest) && !found; i++ {
		found = jsonval.Equal(v, n.rest[i].eval(e))
	}
	return jsonval.OfBool(found != n.not)
}

type coalesce struct{ left, right expr }

func (c *coalesce) eval(e *env) jsonval.Value {
	if v := c.left.eval(e); !v.IsUndefined() {
		return v
	}
	return c.right.eval(e)
}

type ternary struct{ condition, then, otherwise expr }

func (t *ternary) eval(e *env) jsonval.Value {
	if t.condition.eval(e).True() {
		return t.then.eval(e)
	}
	return t.otherwise.eval(e)
}

// arithmetic works on doubles, as the service does for what a query computes; a division by zero, which
// the service refuses with code 4001 while it runs, is undefined here.
type arithmetic struct {
	op          string
	left, right expr
}

func (a *arithmetic) eval(e *env) jsonval.Value {
	x, y := a.left.eval(e), a.right.eval(e)
	if x.Kind() != jsonval.Number || y.Kind() != jsonval.Number {
		return jsonval.Value{}
	}
	l, r := x.Float(), y.Float()
	switch a.op {
	case "+":
		return jsonval.OfFloat(l + r)
	case "-":
		return jsonval.OfFloat(l - r)
	case "*":
		return jsonval.OfFloat(l * r)
	case "/":
		return jsonval.OfFloat(l / r)
	default:
		return jsonval.OfFloat(math.Mod(l, r))
	}
}

type minus struct{ operand expr }

func (m *minus) eval(e *env) jsonval.Value {
	v := m.operand.eval(e)
	if v.Kind() != jsonval.Number {
		return jsonval.Value{}
	}
	if n, ok := v.Int(); ok && n != math.MinInt64 {
		return jsonval.OfInt(-n)
	}
	return jsonval.OfFloat(-v.Float())
}

// call is a function of the table in functions.go.
type call struct {
	fn   function
	args []expr
}

func (c *call) eval(e *env) jsonval.Value {
	args := make([]jsonval.Value, len(c.args))
	for i, a := range c.args {
		args[i] = a.eval(e)
	}
	return c.fn.do(e, args)
}
