package cosmossql

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"sqlwriter/test/emulators/cosmosdb/jsonval"
)

// aggregate is COUNT and its like, allowed only directly in the select list; Query evaluates it.
type aggregate struct {
	name     string
	argument expr
}

func (a *aggregate) eval(*env) jsonval.Value { return jsonval.Value{} }

// expression is the entry of the grammar, lowest binding first: ?: then ?? then OR, AND, comparisons,
// || then + - then * / %, unary operators, member access.
func (p *parser) expression() (expr, error) {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > maxNesting {
		return nil,
			&Error{Code: "SC3002", Start: p.peek().start, End: p.peek().end, Message: "The query is nested too deeply."}
	}
	left, err := p.coalesced()
	if err != nil || !p.accept("?") {
		return left, err
	}
	then, err := p.expression()
	if err != nil {
		return nil, err
	}
	if err := p.expect(":"); err != nil {
		return nil, err
	}
	otherwise, err := p.expression()
	return &ternary{left, then, otherwise}, err
}

// leftAssociative parses operand (op operand)*.
func (p *parser) leftAssociative(
	operand func() (expr, error), ops []string, build func(op string, l, r expr) expr,
) (expr, error) {
	left, err := operand()
	for err == nil {
		i := slices.IndexFunc(ops, p.peek().is)
		if i < 0 {
			return left, nil
		}
		p.take()
		var right expr
		if right, err = operand(); err == nil {
			left = build(ops[i], left, right)
		}
	}
	return nil, err
}

func (p *parser) coalesced() (expr, error) {
	return p.leftAssociative(p.or, []string{"??"}, func(_ string, l, r expr) expr { return &coalesce{l, r} })
}

func (p *parser) or() (expr, error) {
	return p.leftAssociative(p.and, []string{"OR"}, func(_ string, l, r expr) expr { return &logical{true, l, r} })
}

func (p *parser) and() (expr, error) {
	return p.leftAssociative(p.comparison, []string{"AND"}, func(_ string, l, r expr) expr {
		return &logical{false, l, r}
	})
}

func (p *parser) comparison() (expr, error) {
	left, err := p.operand()
	if err != nil {
		return nil, err
	}
	t := p.peek()
	negated := t.is("NOT")
	operators := []string{"=", "!=", "<>", "<", "<=", ">", ">="}
	i := slices.IndexFunc(operators, t.is)
	if !negated && i < 0 && !t.is("IN") && !t.is("BETWEEN") && !t.is("LIKE") {
		return left, nil
	}
	if p.bareNot != nil && p.bareNot == left {
		return nil, &Error{
			Code: "EMULATOR", Start: t.start, End: t.end, NotImplemented: true,
			Message: "NOT before a comparison without parentheses is ambiguous and refused by this emulator: write NOT (a = b)",
		}
	}
	p.take()
	if i >= 0 {
		op := operators[i]
		if op == "<>" {
			op = "!="
		}
		right, err := p.operand()
		return &compare{op, left, right}, err
	}
	if negated {
		t = p.take()
	}
	switch {
	case t.is("IN"):
		return p.inList(left, negated)
	case t.is("BETWEEN"):
		return p.betweenBounds(left, negated)
	case t.is("LIKE"):
		return p.likePattern(left, negated)
	default:
		p.pos--
		return nil, p.unexpected()
	}
}

func (p *parser) inList(needle expr, negated bool) (expr, error) {
	if err := p.expect("("); err != nil {
		return nil, err
	}
	if p.peek().is("SELECT") {
		return nil, p.refuse("a subquery")
	}
	list, err := p.list(")")
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		p.pos--
		return nil, p.unexpected()
	}
	n := &in{not: negated, needle: needle, list: list}
	p.query.binds = append(p.query.binds, n)
	return n, nil
}

func (p *parser) betweenBounds(value expr, negated bool) (expr, error) {
	low, err := p.operand()
	if err != nil {
		return nil, err
	}
	if err := p.expect("AND"); err != nil {
		return nil, err
	}
	up, err := p.operand()
	return &between{negated, value, low, up}, err
}

func (p *parser) likePattern(value expr, negated bool) (expr, error) {
	pattern, err := p.operand()
	if err != nil {
		return nil, err
	}
	n := &like{not: negated, value: value, pattern: pattern}
	if p.accept("ESCAPE") {
		t := p.peek()
		if t.kind != tokString || utf8.RuneCountInString(t.text) != 1 {
			return nil, p.unexpected()
		}
		n.escape, _ = utf8.DecodeRuneInString(p.take().text)
	}
	p.query.binds = append(p.query.binds, n)
	return n, nil
}

// list is comma separated expressions up to the closing symbol, which it takes.
func (p *parser) list(closing string) ([]expr, error) {
	var out []expr
	if p.accept(closing) {
		return out, nil
	}
	for {
		e, err := p.expression()
		if err != nil {
			return nil, err
		}
		out = append(out, e)
		if p.accept(closing) {
			return out, nil
		}
		if err := p.expect(","); err != nil {
			return nil, err
		}
	}
}

func (p *parser) operand() (expr, error) {
	e, err := p.sum()
	if err != nil {
		return nil, err
	}
	if t := p.peek(); t.is("||") {
		return nil, p.refuse("the operator ||")
	} else if t.kind == tokSymbol && slices.Contains([]string{"|", "&", "^", "<<", ">>", ">>>"}, t.text) {
		return nil, p.refuse("the bitwise operator " + t.text)
	}
	return e, nil
}

func newArithmetic(op string, l, r expr) expr { return &arithmetic{op, l, r} }

func (p *parser) sum() (expr, error) {
	return p.leftAssociative(p.product, []string{"+", "-"}, newArithmetic)
}

func (p *parser) product() (expr, error) {
	return p.leftAssociative(p.unary, []string{"*", "/", "%"}, newArithmetic)
}

func (p *parser) unary() (expr, error) {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > maxNesting {
		return nil,
			&Error{Code: "SC3002", Start: p.peek().start, End: p.peek().end, Message: "The query is nested too deeply."}
	}
	switch t := p.peek(); {
	case t.is("NOT"):
		p.take()
		operand, err := p.unary()
		n := &not{operand}
		p.bareNot = n
		return n, err
	case t.is("-"):
		p.take()
		operand, err := p.unary()
		return &minus{operand}, err
	case t.is("+"):
		p.take()
		return p.unary()
	case t.is("~"):
		return nil, p.refuse("the bitwise operator ~")
	default:
		return p.postfix()
	}
}

func (p *parser) postfix() (expr, error) {
	e, err := p.primary()
	for err == nil {
		switch {
		case p.accept("."):
			t := p.peek()
			if t.kind != tokWord {
				return nil, p.unexpected()
			}
			if isReserved(t.text) {
				return nil, &Error{
					Code: "SC1001", Start: t.start, End: t.end,
					Message: fmt.Sprintf(
						"Syntax error, incorrect syntax near '%s': a keyword, write [\"%s\"].", t.text, t.text),
				}
			}
			e = member(e, p.take().text)
		case p.accept("["):
			var key expr
			if key, err = p.expression(); err != nil {
				return nil, err
			}
			if err = p.expect("]"); err != nil {
				return nil, err
			}
			if l, ok := key.(*literal); ok && l.value.Kind() == jsonval.String {
				e = member(e, l.value.Text())
			} else {
				e = &index{e, key}
			}
		default:
			return e, nil
		}
	}
	return nil, err
}

func member(base expr, name string) expr {
	if path, ok := base.(*pathExpr); ok {
		return &pathExpr{append(slices.Clone(path.names), name)}
	}
	return &index{base, &literal{jsonval.OfString(name)}}
}

func (p *parser) primary() (expr, error) {
	t := p.peek()
	switch t.kind {
	case tokNumber, tokString:
		p.take()
		if t.kind == tokString {
			return &literal{jsonval.OfString(t.text)}, nil
		}
		v, err := jsonval.Parse(t.text)
		return &literal{v}, err
	case tokParam:
		p.take()
		return p.param(t), nil
	case tokWord:
		return p.word()
	default:
	}
	switch {
	case p.accept("("):
		if p.peek().is("SELECT") {
			return nil, p.refuse("a subquery")
		}
		e, err := p.expression()
		if err != nil {
			return nil, err
		}
		p.bareNot = nil
		return e, p.expect(")")
	case p.accept("["):
		elements, err := p.list("]")
		return &arrayLiteral{elements}, err
	case p.accept("{"):
		return p.object()
	default:
		return nil, p.unexpected()
	}
}

func (p *parser) param(t token) expr {
	i := slices.IndexFunc(p.query.params, func(r paramRef) bool { return r.name == t.text })
	if i < 0 {
		i = len(p.query.params)
		p.query.params = append(p.query.params, paramRef{t.text, t.start, t.end})
	}
	return &param{i}
}

func (p *parser) word() (expr, error) {
	t := p.peek()
	switch strings.ToUpper(t.text) {
	case "NULL":
		p.take()
		return &literal{jsonval.NullValue()}, nil
	case "TRUE", "FALSE":
		p.take()
		return &literal{jsonval.OfBool(strings.EqualFold(t.text, "TRUE"))}, nil
	case "UNDEFINED":
		p.take()
		return &literal{}, nil
	case "EXISTS", "ARRAY", "UDF":
		return nil, p.refuse(strings.ToUpper(t.text))
	}
	if isReserved(t.text) {
		return nil, p.unexpected()
	}
	p.take()
	if p.peek().is("(") {
		return p.function(t)
	}
	p.names = append(p.names, t)
	return &pathExpr{}, nil
}

func (p *parser) function(name token) (expr, error) {
	p.take() // (
	upper := strings.ToUpper(name.text)
	direct := p.inSelect
	p.inSelect = false
	args, err := p.list(")")
	p.inSelect = direct
	if err != nil {
		return nil, err
	}
	if slices.Contains([]string{"COUNT", "SUM", "MIN", "MAX", "AVG"}, upper) {
		if !direct || len(args) != 1 {
			return nil,
				&Error{
					Code: "SC2101", Start: name.start, End: name.end,
					Message: upper + " takes one argument and stands in the select list.",
				}
		}
		p.query.aggregate = upper
		return &aggregate{upper, args[0]}, nil
	}
	fn, ok := functions()[upper]
	if !ok {
		return nil, &Error{
			Code: "SC2005", Start: name.start, End: name.end, NotImplemented: true,
			Message: fmt.Sprintf("'%s' is not a function that this emulator implements.", name.text),
		}
	}
	if len(args) < fn.min || len(args) > fn.max {
		return nil,
			&Error{
				Code: "SC2050", Start: name.start, End: name.end,
				Message: fmt.Sprintf("The %s function requires %d to %d argument(s).", upper, fn.min, fn.max),
			}
	}
	return &call{fn, args}, nil
}

func (p *parser) object() (expr, error) {
	out := &objectLiteral{}
	if p.accept("}") {
		return out, nil
	}
	for {
		t := p.peek()
		if t.kind != tokWord && t.kind != tokString {
			return nil, p.unexpected()
		}
		p.take()
		if err := p.expect(":"); err != nil {
			return nil, err
		}
		v, err := p.expression()
		if err != nil {
			return nil, err
		}
		out.names, out.values = append(out.names, t.text), append(out.values, v)
		if p.accept("}") {
			return out, nil
		}
		if err := p.expect(","); err != nil {
			return nil, err
		}
	}
}
