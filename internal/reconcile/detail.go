package reconcile

import (
	"fmt"
	"strings"

	"sqlwriter/internal/invoice"
)

// The details of findings are in words, without values of columns.

func lineDetail(d invoice.Document, line Line) string {
	switch line.Rows {
	case RowsMissing:
		return "IVCE_DTL has no such line; the ledger names content of " + seconds(line.Ledger.SourceTS)
	case RowsNoTracking:
		return "IVCE_TRKG_MSTR has no such line"
	default:
		if LedgerStateOf(d, line.Ledger) != LedgerSame {
			return "the document has other content now, so nobody can tell which columns differ"
		}
		return "differs in " + strings.Join(differing(d, line), ", ")
	}
}

// differing names the columns in which a line is not as its document says, but the status.
func differing(d invoice.Document, line Line) (names []string) {
	want := d.Mapping.RowValues(d.Values, d.Main, line.ID)
	for i, c := range d.Mapping.Columns() {
		if i < len(line.Values) && line.Values[i] != want[i] && !c.Status && !c.Keep && line.Ledger.has(d.Mapping, i) {
			names = append(names, string(c.Table)+"."+c.Name)
		}
	}
	return names
}

func linkDetail(d invoice.Document, c Cell, line Line) string {
	if c.Document == DocUnaudited {
		return fmt.Sprintf("its outcome is %q since %s; rows: %s", d.State.Outcome, d.State.CommittedAt, c.Rows)
	}
	has := map[LedgerState]string{
		LedgerNone:   "the ledger has no such line",
		LedgerOther:  "the line has its content of " + seconds(line.Ledger.SourceTS),
		LedgerMarked: "the line has its failure mark",
		LedgerOlder:  "the line has content of the older document " + line.Ledger.DocumentID,
	}[c.Ledger]
	return fmt.Sprintf("%s; the document was committed at %s, rows: %s", has, d.State.CommittedAt, c.Rows)
}

// has reports whether the version that wrote the line had a column of the mapping.
func (l Ledger) has(m *invoice.Mapping, place int) bool {
	return l.HashVersion == m.Version() || (l.Recipe != nil && l.Recipe.Has(place))
}
