package fault

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxForeign is the most bytes of a foreign text in a reason, a code or a line of a log.
const MaxForeign = 200

// Truncate cuts a text to at most limit bytes, never inside a character. An ellipsis ends a cut text, so limit must be
// 3 or more. Bytes that are not UTF-8 become U+FFFD.
func Truncate(text string, limit int) string {
	const mark = "…"
	text = strings.ToValidUTF8(text, string(utf8.RuneError))
	if len(text) <= limit {
		return text
	}
	cut := limit - len(mark)
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + mark
}

// TruncateLine is Truncate for a text that must stay on one line: each character that cannot be printed becomes a
// question mark.
func TruncateLine(text string, limit int) string {
	return Truncate(strings.Map(func(r rune) rune {
		if unicode.IsGraphic(r) {
			return r
		}
		return '?'
	}, text), limit)
}
