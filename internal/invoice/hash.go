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

// RowHashes are the hashes of a line's rows in the two tables: lower-case hex SHA-256 over HashVersion and the row's
// values but the status, which stewards change. The ledger stores them, so that an edit of a row can be detected. The
// values are aligned with Columns(), like those of RowValues.
func RowHashes(row []Value) (detail, tracking string) {
	p := compiled()
	hash := func(table Table) string {
		b := appendRecipe(recipeRow)
		for i, v := range row {
			if c := p.columns[i]; c.Table == table && !c.IsStatus() {
				b = appendValue(p, b, i, v)
			}
		}
		return hexSum(b)
	}
	return hash(Detail), hash(Tracking)
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

// appendValues writes each column's table, name and value. NULL and "" differ in the first byte.
func appendValues(p *plan, b []byte, values []Value) []byte {
	b = binary.AppendUvarint(b, uint64(len(values)))
	for i, v := range values {
		b = appendValue(p, b, i, v)
	}
	return b
}

func appendValue(p *plan, b []byte, i int, v Value) []byte {
	b = append(b, p.heads[i]...)
	if v.Null {
		return append(b, 0)
	}
	return appendText(append(b, 1), v.Text)
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func hexSum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
