package invoice

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// The recipes of the hashes. Every part is a number or a text with its length in front, and the recipe's name comes
// first, so two different contents never give the same bytes. A change of any recipe, or of the canonical form of any
// value, needs a new HashVersion: the golden test says so.
const (
	recipeContent = "content"
	recipeRefused = "refused"
	recipeRow     = "row"
)

// contentHash names a content: the lines it is for and every value that goes to them.
func contentHash(p *plan, main int64, duplicates []int64, values []Value) string {
	return hexSum(appendContent(p, recipeContent, main, duplicates, values))
}

// refusedHash names a content that cannot be written. It covers what the refused members hold, so that it changes when
// the content does, and no content that can be written has it: otherwise a document whose bad value reads as NULL
// would pass for one that was applied with NULL there.
func refusedHash(p *plan, main int64, duplicates []int64, values []Value, refused []refusedMember) string {
	b := appendContent(p, recipeRefused, main, duplicates, values)
	b = binary.AppendUvarint(b, uint64(len(refused)))
	for _, m := range refused {
		sum := sha256.Sum256(m.span)
		b = append(appendText(b, m.path), sum[:]...)
	}
	return hexSum(b)
}

// RowHash names what one line of a document holds: the lower-case hex SHA-256 over HashVersion and RowValues. The
// ledger keeps it, so that a row that somebody edited later can be told from one that we wrote. Values are aligned
// with Columns().
func RowHash(values []Value, main, detail int64) string {
	p := compiled()
	return hexSum(appendValues(p, appendRecipe(recipeRow), RowValues(values, main, detail)))
}

func appendContent(p *plan, recipe string, main int64, duplicates []int64, values []Value) []byte {
	b := binary.AppendVarint(appendRecipe(recipe), main)
	b = binary.AppendUvarint(b, uint64(len(duplicates)))
	for _, id := range duplicates {
		b = binary.AppendVarint(b, id)
	}
	return appendValues(p, b, values)
}

func appendRecipe(name string) []byte {
	const usual = 4096 // bytes of an ordinary content, so that the buffer grows once
	return binary.AppendUvarint(appendText(make([]byte, 0, usual), name), HashVersion)
}

// appendValues writes each column's table, name and value; NULL and ” differ in the first byte.
func appendValues(p *plan, b []byte, values []Value) []byte {
	b = binary.AppendUvarint(b, uint64(len(values)))
	for i, v := range values {
		b = append(b, p.heads[i]...)
		if v.Null {
			b = append(b, 0)
			continue
		}
		b = appendText(append(b, 1), v.Text)
	}
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func hexSum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
