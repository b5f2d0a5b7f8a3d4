package invoice

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// The names of the hash recipes. The name comes first, and each part is a number or a text with its length in front.
// Different contents so never give the same bytes. A change of a recipe, of the columns or of a value's canonical form
// needs a new HashVersion; a golden test checks it.
const (
	recipeContent = "content"
	recipeRefused = "refused"
	recipeRow     = "row"
)

// contentHash covers the line ids and every value.
func contentHash(p *plan, main int64, duplicates []int64, values []Value) string {
	return hexSum(appendContent(p, recipeContent, main, duplicates, values))
}

// refusedHash covers content that cannot be written, including the refused members. It never equals a contentHash:
// otherwise a bad value that reads as NULL would look like content that was applied with NULL.
func refusedHash(p *plan, main int64, duplicates []int64, values []Value, refused []refusedMember) string {
	b := appendContent(p, recipeRefused, main, duplicates, values)
	b = binary.AppendUvarint(b, uint64(len(refused)))
	for _, m := range refused {
		sum := sha256.Sum256(m.span)
		b = append(appendText(b, m.path), sum[:]...)
	}
	return hexSum(b)
}

// RowHash is the hash of one line's values: lower-case hex SHA-256 over HashVersion and RowValues. The ledger stores it
// so that later edits of the row can be detected. Values are aligned with Columns().
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
	const usual = 4096 // enough for an ordinary content, so that the buffer does not grow
	return binary.AppendUvarint(appendText(make([]byte, 0, usual), name), HashVersion)
}

// appendValues writes each column's table, name and value. NULL and ” differ in the first byte.
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
