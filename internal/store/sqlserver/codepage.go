package sqlserver

import (
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
)

// codePageUTF8 is the code page of the collations that end in _UTF8. It has every character.
const codePageUTF8 = 65001

// codePage has the characters of a varchar column, each with its number of bytes.
type codePage struct {
	number int
	has    map[rune]int
}

// newCodePage makes the set of a code page of SQL Server's collations; nil for an unknown number. It decodes all
// codes of the page, because encoders replace missing characters by similar ones.
func newCodePage(number int) *codePage {
	table := encodingOf(number)
	if table == nil {
		return nil
	}
	p := &codePage{number: number, has: map[rune]int{}}
	decoder := table.NewDecoder()
	add := func(code ...byte) {
		var text [2 * utf8.UTFMax]byte
		decoder.Reset()
		n, _, err := decoder.Transform(text[:], code, true)
		if r, size := utf8.DecodeRune(text[:n]); err == nil && size == n && r != utf8.RuneError {
			p.has[r] = len(code)
		}
	}
	for b := range 0x100 {
		add(byte(b))
	}
	if _, single := table.(*charmap.Charmap); single {
		return p
	}
	for code := firstPair; code <= lastPair; code++ {
		if !notOnServer(number, code) {
			add(byte(code>>8), byte(code))
		}
	}
	return p
}

// firstPair and lastPair bound the codes of two bytes.
const firstPair, lastPair = 0x8140, 0xFEFE

// encodingOf is the library's table of a code page.
func encodingOf(number int) encoding.Encoding {
	switch number {
	case 437:
		return charmap.CodePage437
	case 850:
		return charmap.CodePage850
	case 874:
		return charmap.Windows874
	case 932:
		return japanese.ShiftJIS
	case 936:
		return simplifiedchinese.GBK
	case 949:
		return korean.EUCKR
	case 950:
		return traditionalchinese.Big5
	case 1250:
		return charmap.Windows1250
	case 1251:
		return charmap.Windows1251
	case 1252:
		return charmap.Windows1252
	case 1253:
		return charmap.Windows1253
	case 1254:
		return charmap.Windows1254
	case 1255:
		return charmap.Windows1255
	case 1256:
		return charmap.Windows1256
	case 1257:
		return charmap.Windows1257
	case 1258:
		return charmap.Windows1258
	}
	return nil
}

// notOnServer reports a code that the library has and the server's code page lacks. Those are characters of GB 18030
// in 936, and of HKSCS and the control pictures in 950. The remaining tables equal those that go-mssqldb has from
// Microsoft.
func notOnServer(number, code int) bool {
	switch number {
	case 936:
		return code == 0xA8BF || (code >= 0xA989 && code <= 0xA995) || code >= 0xFE50
	case 950:
		return code < 0xA140 || (code >= 0xA3C0 && code <= 0xA3E0) || (code >= 0xC6A1 && code <= 0xC8FE) ||
			code >= 0xF9FE
	}
	return false
}

// measure counts the bytes of a text in the code page. If ok is false, missing is the first character that the page
// lacks.
func (p *codePage) measure(text string) (bytes int, missing rune, ok bool) {
	for _, r := range text {
		size := 1
		if r >= utf8.RuneSelf { // every code page has ASCII
			if size = p.has[r]; size == 0 {
				return 0, r, false
			}
		}
		bytes += size
	}
	return bytes, 0, true
}
