package cosmossql

import (
	"fmt"
	"slices"
	"strings"
)

// MaxLength is the longest query text the service takes (account member maxSqlQueryInputLength, 512 KB).
const MaxLength = 524288

// maxNesting bounds the parser's recursion; a query beyond it is refused instead of exhausting the stack.
const maxNesting = 200

type parser struct {
	tokens []token
	pos    int
	depth  int
	query  *Query
	// names are the identifiers used as roots, resolved when FROM has given the alias.
	names []token
	// bare is set while a NOT without parentheses is the last thing parsed.
	bareNot expr
	// aggregates are allowed directly in the select list only.
	inSelect bool
}

// Parse reads a SELECT statement. Every error is an *Error.
func Parse(text string) (*Query, error) {
	p, err := newParser(text)
	if err != nil {
		return nil, err
	}
	if err := p.statement(); err != nil {
		return nil, err
	}
	return p.query, nil
}

// ParseCondition reads the condition of a patch, "FROM alias WHERE expression".
func ParseCondition(text string) (*Query, error) {
	p, err := newParser(text)
	if err != nil {
		return nil, err
	}
	if err := p.from(); err != nil {
		return nil, err
	}
	if !p.accept("WHERE") {
		return nil, p.unexpected()
	}
	if p.query.where, err = p.expression(); err != nil {
		return nil, err
	}
	if err := p.end(); err != nil {
		return nil, err
	}
	return p.query, nil
}

func newParser(text string) (*parser, error) {
	if len(text) > MaxLength {
		return nil, &Error{Code: "SC3001", Message: fmt.Sprintf("The query is longer than %d bytes.", MaxLength)}
	}
	tokens, err := lex(text)
	if err != nil {
		return nil, err
	}
	if len(tokens) == 1 {
		return nil, &Error{Code: "SC1002", Message: "Syntax error, unexpected end-of-file."}
	}
	return &parser{tokens: tokens, query: &Query{}}, nil
}

func (p *parser) peek() token { return p.tokens[p.pos] }

func (p *parser) take() token {
	t := p.tokens[p.pos]
	if t.kind != tokEnd {
		p.pos++
	}
	return t
}

func (p *parser) accept(text string) bool {
	if p.peek().is(text) {
		p.pos++
		return true
	}
	return false
}

func (p *parser) expect(text string) error {
	if !p.accept(text) {
		return p.unexpected()
	}
	return nil
}

func (p *parser) unexpected() error {
	t := p.peek()
	if t.kind == tokEnd {
		return &Error{Code: "SC1002", Start: t.start, End: t.end, Message: "Syntax error, unexpected end-of-file."}
	}
	return &Error{
		Code: "SC1001", Start: t.start, End: t.end,
		Message: fmt.Sprintf("Syntax error, incorrect syntax near '%s'.", t.text),
	}
}

func (p *parser) refuse(what string) error {
	t := p.peek()
	return &Error{
		Code: "EMULATOR", Start: t.start, End: t.end, NotImplemented: true,
		Message: what + " is not implemented by this emulator",
	}
}

func (p *parser) statement() error {
	if err := p.expect("SELECT"); err != nil {
		return err
	}
	if err := p.selectClause(); err != nil {
		return err
	}
	if err := p.from(); err != nil {
		return err
	}
	var err error
	if p.accept("WHERE") {
		if p.query.where, err = p.expression(); err != nil {
			return err
		}
	}
	if p.accept("GROUP") {
		if err := p.groupBy(); err != nil {
			return err
		}
	}
	if p.accept("ORDER") {
		if err := p.orderBy(); err != nil {
			return err
		}
	}
	if p.accept("OFFSET") {
		if p.query.offset, err = p.unary(); err != nil {
			return err
		}
		if err := p.expect("LIMIT"); err != nil {
			return err
		}
		if p.query.limit, err = p.unary(); err != nil {
			return err
		}
	}
	return p.end()
}

func (p *parser) end() error {
	if p.peek().kind != tokEnd {
		return p.unexpected()
	}
	for _, t := range p.names {
		if t.text != p.query.alias {
			return &Error{
				Code: "SC2001", Start: t.start, End: t.end,
				Message: fmt.Sprintf("Identifier '%s' could not be resolved.", t.text),
			}
		}
	}
	for i, it := range p.query.items {
		if it.name == "" { // the alias itself was selected
			p.query.items[i].name = p.query.alias
		}
	}
	return nil
}

func (p *parser) selectClause() error {
	q := p.query
	q.distinct = p.accept("DISTINCT")
	var err error
	if p.accept("TOP") {
		if q.top, err = p.unary(); err != nil {
			return err
		}
	}
	if p.accept("*") {
		q.star = true
		return nil
	}
	p.inSelect = true
	defer func() { p.inSelect = false }()
	if p.accept("VALUE") {
		if q.value, err = p.expression(); err != nil {
			return err
		}
		if a, ok := q.value.(*aggregate); ok && a.name == "COUNT" {
			q.count = a.argument
		}
		return nil
	}
	for {
		if err := p.selectItem(); err != nil {
			return err
		}
		if !p.accept(",") {
			return nil
		}
	}
}

func (p *parser) selectItem() error {
	start := p.peek()
	e, err := p.expression()
	if err != nil {
		return err
	}
	name := ""
	switch t := p.peek(); {
	case p.accept("AS"):
		if p.peek().kind != tokWord {
			return p.unexpected()
		}
		name = p.take().text
	case t.kind == tokWord && !isReserved(t.text):
		name = p.take().text
	default:
		path, ok := e.(*pathExpr)
		if !ok {
			unnamed := 1
			for _, it := range p.query.items {
				if strings.HasPrefix(it.name, "$") {
					unnamed++
				}
			}
			name = fmt.Sprintf("$%d", unnamed)
		} else if len(path.names) > 0 {
			name = path.names[len(path.names)-1]
		}
	}
	if slices.ContainsFunc(p.query.items, func(it item) bool { return it.name == name }) {
		return &Error{
			Code: "SC2022", Start: start.start, End: start.end,
			Message: fmt.Sprintf("The property name '%s' is given twice.", name),
		}
	}
	p.query.items = append(p.query.items, item{name: name, expr: e})
	return nil
}

func (p *parser) from() error {
	if !p.peek().is("FROM") {
		return p.refuseMissingFrom()
	}
	p.take()
	t := p.peek()
	if t.is("(") {
		return p.refuse("a subquery in FROM")
	}
	if t.kind != tokWord || isReserved(t.text) {
		return p.unexpected()
	}
	p.query.alias = p.take().text
	if p.peek().is(".") || p.peek().is("[") || p.peek().is("IN") {
		return p.refuse("FROM over a part of the document")
	}
	if p.accept("AS") {
		if p.peek().kind != tokWord || isReserved(p.peek().text) {
			return p.unexpected()
		}
		p.query.alias = p.take().text
	} else if t := p.peek(); t.kind == tokWord && !isReserved(t.text) {
		p.query.alias = p.take().text
	}
	if p.peek().is("JOIN") {
		return p.refuse("JOIN")
	}
	return nil
}

func (p *parser) refuseMissingFrom() error {
	if p.peek().kind == tokEnd || p.peek().is("WHERE") {
		return p.refuse("a query without FROM")
	}
	return p.unexpected()
}

func (p *parser) groupBy() error {
	if err := p.expect("BY"); err != nil {
		return err
	}
	p.query.groupBy = true
	for {
		if _, err := p.expression(); err != nil {
			return err
		}
		if !p.accept(",") {
			return nil
		}
	}
}

func (p *parser) orderBy() error {
	if err := p.expect("BY"); err != nil {
		return err
	}
	if p.peek().is("RANK") {
		return p.refuse("ORDER BY RANK")
	}
	for {
		e, err := p.expression()
		if err != nil {
			return err
		}
		o := order{expr: e}
		if !p.accept("ASC") {
			o.descending = p.accept("DESC")
		}
		p.query.orderBy = append(p.query.orderBy, o)
		if !p.accept(",") {
			return nil
		}
	}
}

// isReserved lists the words that cannot be an alias or, after a dot, a member name: the vendor's page
// "Keywords" asks for c["order"] instead. VALUE is not among them: c.value works.
func isReserved(word string) bool {
	return slices.Contains([]string{
		"SELECT", "FROM", "WHERE", "GROUP", "ORDER", "BY", "TOP", "DISTINCT", "AS", "IN", "AND", "OR", "NOT",
		"BETWEEN", "LIKE", "ESCAPE", "ASC", "DESC", "JOIN", "EXISTS", "NULL", "TRUE", "FALSE", "UNDEFINED",
		"OFFSET", "LIMIT", "ARRAY", "UDF",
	}, strings.ToUpper(word))
}
