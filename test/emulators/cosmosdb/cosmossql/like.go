package cosmossql

import (
	"slices"

	"sqlwriter/test/emulators/cosmosdb/jsonval"
)

// like is [NOT] LIKE with % _ [set] [^set] and ESCAPE (vendor's page "LIKE keyword"). A pattern that is a
// constant is read once.
type like struct {
	not             bool
	value, pattern  expr
	escape          rune // 0 when none
	compiled        []likePart
	compiledIsReady bool
}

// likePart matches one rune, or any run of runes.
type likePart struct {
	run    bool // %
	any    bool // _
	negate bool // [^...]
	ranges [][2]rune
}

func (l *like) bind(e *env) {
	l.compiledIsReady = false
	if isConstant(l.pattern) {
		if p := l.pattern.eval(e); p.Kind() == jsonval.String {
			l.compiled, l.compiledIsReady = compileLike(p.Text(), l.escape), true
		}
	}
}

func (l *like) eval(e *env) jsonval.Value {
	v := l.value.eval(e)
	if v.Kind() != jsonval.String {
		return jsonval.Value{}
	}
	parts := l.compiled
	if !l.compiledIsReady {
		p := l.pattern.eval(e)
		if p.Kind() != jsonval.String {
			return jsonval.Value{}
		}
		parts = compileLike(p.Text(), l.escape)
	}
	return jsonval.OfBool(matchLike(parts, []rune(v.Text())) != l.not)
}

func compileLike(pattern string, escape rune) []likePart {
	runes := []rune(pattern)
	var out []likePart
	one := func(r rune) likePart { return likePart{ranges: [][2]rune{{r, r}}} }
	for i := 0; i < len(runes); i++ {
		switch r := runes[i]; {
		case escape != 0 && r == escape && i+1 < len(runes):
			i++
			out = append(out, one(runes[i]))
		case r == '%':
			out = append(out, likePart{run: true})
		case r == '_':
			out = append(out, likePart{any: true})
		case r == '[' && slices.Index(runes[i+1:], ']') > 0:
			end := i + 1 + slices.Index(runes[i+1:], ']')
			out = append(out, likeSet(runes[i+1:end]))
			i = end
		default:
			out = append(out, one(r))
		}
	}
	return out
}

func likeSet(body []rune) likePart {
	part := likePart{}
	if body[0] == '^' {
		part.negate, body = true, body[1:]
	}
	for i := 0; i < len(body); i++ {
		if i+2 < len(body) && body[i+1] == '-' {
			part.ranges = append(part.ranges, [2]rune{body[i], body[i+2]})
			i += 2
			continue
		}
		part.ranges = append(part.ranges, [2]rune{body[i], body[i]})
	}
	return part
}

func (p likePart) matches(r rune) bool {
	if p.any {
		return true
	}
	inside := slices.ContainsFunc(p.ranges, func(b [2]rune) bool { return r >= b[0] && r <= b[1] })
	return inside != p.negate
}

// matchLike walks text and pattern with one point to come back to, the last run: linear in practice and
// never exponential.
func matchLike(parts []likePart, text []rune) bool {
	p, t, backP, backT := 0, 0, -1, 0
	for t < len(text) {
		switch {
		case p < len(parts) && parts[p].run:
			backP, backT = p, t
			p++
		case p < len(parts) && parts[p].matches(text[t]):
			p++
			t++
		case backP >= 0:
			backT++
			p, t = backP+1, backT
		default:
			return false
		}
	}
	for p < len(parts) && parts[p].run {
		p++
	}
	return p == len(parts)
}
