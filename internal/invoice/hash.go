package invoice

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// The names of the hash recipes. The name comes first, and each part is a number or a text with its length in front.
// Different contents so never give the same bytes. A change of a recipe or of a value's canonical form needs another
// recipeNumber, which is part of Mapping.Version; a golden test checks it.
const (
	recipeNumber  = "1"
	recipeContent = "content"
	recipeRefused = "refused"
	recipeRow     = "row"
)

// ContentHash covers the line ids and every value. It is false for content of which a value is unknown.
func (r Recipe) ContentHash(d Document) (hash string, known bool) {
	if d.guessed {
		return "", false
	}
	return hexSum(r.appendContent(recipeContent, d.Main, d.Duplicates, d.Values)), true
}

// refusedHash covers content of which a value is unknown, including the refused members. It never equals a ContentHash:
// otherwise a bad value that reads as NULL would look like content that was applied with NULL.
func (r Recipe) refusedHash(main int64, duplicates []int64, values []Value, refused []refusedMember) string {
	b := r.appendContent(recipeRefused, main, duplicates, values)
	b = binary.AppendUvarint(b, uint64(len(refused)))
	for _, m := range refused {
		sum := sha256.Sum256(m.span)
		b = append(appendText(b, m.path), sum[:]...)
	}
	return hexSum(b)
}

// RowHashes are those of Recipe, for the mapping in use.
func (m *Mapping) RowHashes(row []Value) (detail, tracking string) {
	return m.orDefault().own.RowHashes(row)
}

// RowHashes are the hashes of a line's rows in the two tables: lower-case hex SHA-256 over the version and the row's
// values. Two kinds of columns are left out: the status, which stewards change, and columns that keep a value, which
// others fill. The ledger stores them, so that an edit of a row can be detected. The values are aligned with
// Mapping.Columns, like those of RowValues.
func (r Recipe) RowHashes(row []Value) (detail, tracking string) {
	hash := func(table Table) string {
		b := r.begin(recipeRow)
		for _, i := range r.places {
			if c := &r.mapping.columns[i]; c.Table == table && !c.Status && !c.Keep {
				b = r.appendValue(b, i, row[i])
			}
		}
		return hexSum(b)
	}
	return hash(Detail), hash(Tracking)
}

func (r Recipe) appendContent(recipe string, main int64, duplicates []int64, values []Value) []byte {
	b := binary.AppendVarint(r.begin(recipe), main)
	b = binary.AppendUvarint(b, uint64(len(duplicates)))
	for _, id := range duplicates {
		b = binary.AppendVarint(b, id)
	}
	// Each column's table, name and value.
	b = binary.AppendUvarint(b, uint64(len(r.places)))
	for _, i := range r.places {
		b = r.appendValue(b, i, values[i])
	}
	return b
}

func (r Recipe) begin(name string) []byte {
	const usual = 4096 // enough for an ordinary content, so that the buffer does not grow
	return binary.AppendVarint(appendText(make([]byte, 0, usual), name), int64(r.version))
}

// appendValue writes a column's table, name and value. NULL and "" differ in the first byte.
func (r Recipe) appendValue(b []byte, i int, v Value) []byte {
	b = append(b, r.mapping.plan.heads[i]...)
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
