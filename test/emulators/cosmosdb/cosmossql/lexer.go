package cosmossql

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"sqlwriter/test/emulators/cosmosdb/jsonval"
)

// Error is a query text that is refused.
type Error struct {
	// Code is the service's own code where it is known: SC1001 syntax, SC1010 invalid token,
	// SC2001 unresolved name, SC2005 unknown function, SC2022 duplicate alias.
	Code string
	// Start and End are byte offsets of the place in the text.
	Start, End int
	// Message says what is wrong.
	Message string
	// NotImplemented marks what the real service accepts and the emulator does not serve.
	NotImplemented bool
}

// Error is the message with its place.
func (e *Error) Error() string {
	return fmt.Sprintf("%s at %d: %s", e.Code, e.Start, e.Message)
}

type tokenKind uint8

const (
	tokEnd    tokenKind = iota
	tokWord             // identifier or keyword
	tokParam            // @name
	tokNumber           // literal
	tokString           // text holds the content
	tokSymbol           // operator or punctuation
)

type token struct {
	kind       tokenKind
	text       string
	start, end int
}

// is reports whether the token is the symbol or, whatever its case, the keyword.
func (t token) is(text string) bool {
	switch t.kind {
	case tokSymbol:
		return t.text == text
	case tokWord:
		return strings.EqualFold(t.text, text)
	default:
		return false
	}
}

// lex splits a query text. Symbols are matched longest first.
func lex(text string) ([]token, error) {
	if !utf8.ValidString(text) {
		return nil, &Error{Code: "SC1001", Message: "the query is not UTF-8"}
	}
	var out []token
	for pos := 0; ; {
		pos = skipBlank(text, pos)
		if pos >= len(text) {
			return append(out, token{kind: tokEnd, start: pos, end: pos}), nil
		}
		t, err := next(text, pos)
		if err != nil {
			return nil, err
		}
		out, pos = append(out, t), t.end
	}
}

func skipBlank(text string, pos int) int {
	for pos < len(text) {
		switch {
		case text[pos] == ' ' || text[pos] == '\t' || text[pos] == '\n' || text[pos] == '\r':
			pos++
		case strings.HasPrefix(text[pos:], "--"):
			end := strings.IndexByte(text[pos:], '\n')
			if end < 0 {
				return len(text)
			}
			pos += end
		default:
			return pos
		}
	}
	return pos
}

func isWordRune(r rune, first bool) bool {
	return r == '_' || unicode.IsLetter(r) || !first && unicode.IsDigit(r)
}

// wordEnd is where the word that begins at pos ends; pos itself when none begins there.
func wordEnd(text string, pos int) int {
	for i, r := range text[pos:] {
		if !isWordRune(r, i == 0) {
			return pos + i
		}
	}
	return len(text)
}

func next(text string, pos int) (token, error) {
	c := text[pos]
	if end := wordEnd(text, pos); end > pos {
		return token{tokWord, text[pos:end], pos, end}, nil
	}
	switch {
	case c == '@':
		if end := wordEnd(text, pos+1); end > pos+1 {
			return token{tokParam, text[pos:end], pos, end}, nil
		}
	case c == '\'' || c == '"':
		return lexString(text, pos)
	case c >= '0' && c <= '9', c == '.' && pos+1 < len(text) && text[pos+1] >= '0' && text[pos+1] <= '9':
		return lexNumber(text, pos)
	}
	for _, s := range []string{
		">>>", "!=", "<>", "<=", ">=", "??", "||", "<<", ">>",
		"(", ")", "[", "]", "{", "}", ",", ".", ":", "?", "=", "<", ">", "+", "-", "*", "/", "%", "|", "&", "^", "~",
	} {
		if strings.HasPrefix(text[pos:], s) {
			return token{tokSymbol, s, pos, pos + len(s)}, nil
		}
	}
	r, size := utf8.DecodeRuneInString(text[pos:])
	return token{},
		&Error{
			Code: "SC1010", Start: pos, End: pos + size, Message: fmt.Sprintf("Syntax error, invalid token '%c'.", r),
		}
}

func lexNumber(text string, pos int) (token, error) {
	end := pos
	digits := func() {
		for end < len(text) && text[end] >= '0' && text[end] <= '9' {
			end++
		}
	}
	digits()
	if end < len(text) && text[end] == '.' {
		end++
		digits()
	}
	if end < len(text) && (text[end] == 'e' || text[end] == 'E') {
		end++
		if end < len(text) && (text[end] == '+' || text[end] == '-') {
			end++
		}
		digits()
	}
	literal := text[pos:end]
	if literal[0] == '.' {
		literal = "0" + literal
	}
	literal = strings.TrimSuffix(literal, ".")
	if v, err := jsonval.Parse(literal); err != nil || v.Kind() != jsonval.Number || wordEnd(text, end) > end {
		return token{},
			&Error{
				Code: "SC1007", Start: pos, End: end, Message: "Syntax error, invalid number '" + text[pos:end] + "'.",
			}
	}
	return token{tokNumber, literal, pos, end}, nil
}

// lexString reads a literal in either kind of quotes, with JSON's escapes and \'.
func lexString(text string, pos int) (token, error) {
	quote := text[pos]
	for end := pos + 1; end < len(text); end++ {
		switch text[end] {
		case '\\':
			end++
		case quote:
			content, err := unescape(text[pos+1 : end])
			if err != nil {
				return token{},
					&Error{Code: "SC1004", Start: pos, End: end + 1, Message: "Syntax error, invalid string literal."}
			}
			return token{tokString, content, pos, end + 1}, nil
		}
	}
	return token{},
		&Error{Code: "SC1012", Start: pos, End: len(text), Message: "Syntax error, a string literal without end."}
}

func unescape(body string) (string, error) {
	var quoted strings.Builder
	quoted.WriteByte('"')
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case c == '\\' && i+1 < len(body) && body[i+1] == '\'':
			quoted.WriteByte('\'')
			i++
		case c == '\\' && i+1 < len(body):
			quoted.WriteString(body[i : i+2])
			i++
		case c == '"':
			quoted.WriteString(`\"`)
		case c < ' ':
			fmt.Fprintf(&quoted, `\u%04x`, c)
		default:
			quoted.WriteByte(c)
		}
	}
	quoted.WriteByte('"')
	v, err := jsonval.Parse(quoted.String())
	if err != nil {
		return "", err
	}
	return v.Text(), nil
}
