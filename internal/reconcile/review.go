package reconcile

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// maxReviewPaths bounds the paths of a REVIEW_KEY.
const maxReviewPaths = 5

// ReadReviewKey reads the setting REVIEW_KEY: paths of members of a document, separated by commas; nil for an empty text. The error says
// what is wrong, for people.
func ReadReviewKey(text string) ([]Path, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var paths []Path
	for part := range strings.SplitSeq(text, ",") {
		path := Path(strings.Split(strings.TrimSpace(part), "."))
		switch {
		case slices.ContainsFunc(path, oddName) || slices.ContainsFunc(path, func(name string) bool { return strings.ContainsAny(name, " []") }):
			return nil, fmt.Errorf("expected paths of a document's members separated by commas, such as process_output.invoice_number,process_output.item; found %q", strings.TrimSpace(part))
		case slices.ContainsFunc(paths, func(p Path) bool { return slices.Equal(p, path) }):
			return nil, fmt.Errorf("the path %q is there twice", strings.TrimSpace(part))
		}
		paths = append(paths, path)
	}
	if len(paths) > maxReviewPaths {
		return nil, fmt.Errorf("expected at most %d paths, found %d", maxReviewPaths, len(paths))
	}
	return paths, nil
}

// reviewKey is a document's REVIEW_KEY: one scalar for each path. text is equal for equal keys.
type reviewKey struct {
	values []json.RawMessage
	text   string
}

// keyOf is the key of a document; nil if a member is missing, null, blank, a list or an object, or if there is no setting.
func (r *Reconcile) keyOf(raw []byte) *reviewKey {
	if len(r.o.ReviewKey) == 0 {
		return nil
	}
	var k reviewKey
	for _, path := range r.o.ReviewKey {
		value := raw
		for _, name := range path {
			var members map[string]json.RawMessage
			if json.Unmarshal(value, &members) != nil {
				return nil
			}
			value = members[name]
		}
		var scalar any
		if len(value) == 0 || json.Unmarshal(value, &scalar) != nil {
			return nil
		}
		switch v := scalar.(type) {
		case string:
			if strings.TrimSpace(v) == "" {
				return nil
			}
		case float64, bool:
		default:
			return nil
		}
		same, err := json.Marshal(scalar) // as the container compares: 1.0 is 1
		if err != nil {
			return nil
		}
		k.values, k.text = append(k.values, same), k.text+string(same)+"\n"
	}
	return &k
}

// reviewedColumn is a column of IVCE_DTL that lines with one key must have alike: the places of its value and of its confidence in
// invoice.Document.Values.
type reviewedColumn struct {
	name              string
	value, confidence int
}

func reviewedColumns() (found []reviewedColumn) {
	columns := invoice.Columns()
	find := func(path string) int {
		return slices.IndexFunc(columns, func(c invoice.Column) bool { return c.Table == invoice.Detail && c.Path == path })
	}
	for _, path := range []string{"process_output.manufacturer_name", "process_output.part_number", "process_output.unspsc"} {
		i := find(path)
		found = append(found, reviewedColumn{columns[i].Name, i, find(path + "_confidence")})
	}
	return found
}

// sameKeys looks for documents whose main lines have the key of one of these, and other values. Only those count whose main line's ledger
// row names them. counted says which documents the pass comes to, so that a key counts once; nil counts nothing.
func (l *look) sameKeys(ctx context.Context, docs []snapshot, counted func(invoice.Document) bool) error {
	keys := map[string]*reviewKey{}
	of := map[string]bool{}
	for _, s := range docs {
		if s.key != nil && l.current[s.id] {
			keys[s.key.text], of[s.id] = s.key, true
		}
	}
	first := func(group []snapshot) bool {
		i := slices.IndexFunc(group, func(s snapshot) bool { return counted != nil && counted(s.doc) })
		return i >= 0 && of[group[i].id]
	}
	for chunk := range slices.Chunk(slices.Sorted(maps.Keys(keys)), keysOfOne) {
		var wanted []*reviewKey
		for _, text := range chunk {
			wanted = append(wanted, keys[text])
		}
		if err := l.someKeys(ctx, wanted, first); err != nil {
			return err
		}
	}
	return nil
}

// someKeys looks at the documents of a few keys. More documents than one answer holds are asked for key by key. A key that alone has more
// is too common to mean anything: it is Ambiguous.
func (l *look) someKeys(ctx context.Context, keys []*reviewKey, first func([]snapshot) bool) error {
	for try := 1; len(keys) > 0; try++ {
		values := make([][]json.RawMessage, len(keys))
		for i, k := range keys {
			values[i] = k.values
		}
		raws, charge, err := l.p.Documents.SameKeys(ctx, l.o.ReviewKey, values)
		if half := len(keys) / 2; fault.CodeOf(err) == "too_many" {
			if half == 0 {
				l.counts[Ambiguous]++
				return nil
			}
			if err := l.someKeys(ctx, keys[:half], first); err != nil {
				return err
			}
			return l.someKeys(ctx, keys[half:], first)
		}
		if err == nil {
			err = l.pace.Spend(ctx, charge)
		}
		if err != nil {
			return err
		}
		again, err := l.judgeKeys(ctx, raws, keys, first, try == tries)
		if err != nil {
			return err
		}
		keys = again
	}
	return nil
}

// judgeKeys judges the documents of keys, and gives the keys to look at again. The last time there are none.
func (l *look) judgeKeys(ctx context.Context, raws []invoice.Projection, keys []*reviewKey, first func([]snapshot) bool, last bool) (again []*reviewKey, err error) {
	groups := map[string][]snapshot{}
	var ids []int64
	for _, raw := range raws {
		if s, ok := l.snapshotOf(raw); ok && s.key != nil && s.doc.Main > 0 {
			groups[s.key.text] = append(groups[s.key.text], s)
			ids = append(ids, s.doc.Main)
		}
	}
	lines, err := l.readLines(ctx, ids)
	if err != nil {
		return nil, err
	}
	judged := map[string]verdict{}
	var suspects []string
	for text, group := range groups {
		group = l.currentOf(group, lines)
		groups[text] = group
		if v := l.compareLines(group, lines); v.class != "" {
			judged[text] = v
			for _, s := range group {
				suspects = append(suspects, s.id)
			}
		}
	}
	heads, err := l.heads(ctx, suspects)
	if err != nil {
		return nil, err
	}
	for _, k := range keys {
		v, differs := judged[k.text]
		group := groups[k.text]
		changed := slices.ContainsFunc(group, func(s snapshot) bool { return !s.still(heads) })
		switch {
		case !differs:
			continue
		case changed && !last:
			again = append(again, k)
			continue
		case changed:
			v.class = Changing
			for _, s := range group {
				l.undecidedDocuments[s.id] = true
			}
		case v.class == SameKeyDiffers:
			l.seen[v.seen.Key] = v.seen
		}
		if first(group) {
			l.counts[v.class]++
		}
	}
	return again, nil
}

// currentOf are the documents that are committed and whose content the ledger names for their main line, by line.
func (l *look) currentOf(group []snapshot, lines map[int64]Line) []snapshot {
	var current []snapshot
	for _, s := range group {
		if s.doc.State.Status == invoice.Committed && s.doc.SysName == l.SysName && LedgerStateOf(s.doc, lines[s.doc.Main].Ledger) == LedgerSame {
			current = append(current, s)
		}
	}
	slices.SortFunc(current, func(a, b snapshot) int { return cmp.Compare(a.doc.Main, b.doc.Main) })
	return current
}

// compareLines compares documents with one key, by line: SameKeyDiffers, Ambiguous, or no class.
func (l *look) compareLines(group []snapshot, lines map[int64]Line) verdict {
	var v verdict
	differs, concerned := map[string]bool{}, map[int64]snapshot{}
	for i, a := range group {
		for _, b := range group[i+1:] {
			names := l.differingIn(a.doc, b.doc)
			switch {
			case len(names) == 0, slices.Contains(a.doc.Duplicates, b.doc.Main), slices.Contains(b.doc.Duplicates, a.doc.Main):
			case !l.confident(a.doc) || !l.confident(b.doc):
				v.class = Ambiguous
			default:
				concerned[a.doc.Main], concerned[b.doc.Main] = a, b
				for _, name := range names {
					differs[name] = true
				}
			}
		}
	}
	if len(concerned) == 0 {
		return v
	}
	ids := slices.Sorted(maps.Keys(concerned))
	sum := sha256.New()
	for _, id := range ids {
		sum.Write([]byte(lines[id].RowHash + "\n"))
	}
	v.class = SameKeyDiffers
	v.seen = Seen{
		Key: Key{Class: SameKeyDiffers, Line: ids[0], Document: concerned[ids[0]].id}, RowHash: hex.EncodeToString(sum.Sum(nil)),
		Detail: fault.Truncate(fmt.Sprintf("the lines %s have one review key and differ in %s", idList(ids), strings.Join(slices.Sorted(maps.Keys(differs)), ", ")), MaxDetail),
	}
	return v
}

// differingIn names the reviewed columns in which two documents differ.
func (r *Reconcile) differingIn(a, b invoice.Document) (names []string) {
	for _, c := range r.reviewed {
		if a.Values[c.value] != b.Values[c.value] {
			names = append(names, c.name)
		}
	}
	return names
}

// confident reports whether every confidence of the reviewed columns is at least the setting.
func (r *Reconcile) confident(d invoice.Document) bool {
	for _, c := range r.reviewed {
		v := d.Values[c.confidence]
		n, err := strconv.ParseFloat(v.Text, 64)
		if v.Null || err != nil || n < r.o.ReviewConfidence {
			return false
		}
	}
	return true
}
