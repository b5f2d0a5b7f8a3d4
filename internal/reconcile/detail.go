package reconcile

import (
	"fmt"
	"strconv"
	"strings"

	"sqlwriter/internal/invoice"
)

// The details of findings are in words, without values of columns.

func lineDetail(line Line, s snapshot) string {
	switch line.Rows {
	case RowsMissing:
		return "IVCE_DTL has no such line; the ledger names content of " + seconds(line.Ledger.SourceTS)
	case RowsNoTracking:
		return "IVCE_TRKG_MSTR has no such line"
	default:
		if LedgerStateOf(s.doc, line.Ledger) != LedgerSame {
			return "the document has other content now, so nobody can tell which columns differ"
		}
		return "differs in " + strings.Join(differing(s.doc, line), ", ")
	}
}

// differing names the columns in which a line is not as its document says, but the status.
func differing(d invoice.Document, line Line) (names []string) {
	want := invoice.RowValues(d.Values, d.Main, line.ID)
	for i, c := range invoice.Columns() {
		if i < len(line.Values) && line.Values[i] != want[i] && !c.IsStatus() {
			names = append(names, string(c.Table)+"."+c.Name)
		}
	}
	return names
}

func linkDetail(d invoice.Document, c Cell, line Line) string {
	has := map[LedgerState]string{
		LedgerNone:    "the ledger has no such line",
		LedgerSame:    "the line has its content",
		LedgerOther:   "the line has its content of " + seconds(line.Ledger.SourceTS),
		LedgerMarked:  "the line has its failure mark",
		LedgerOlder:   "the line has content of the older document " + line.Ledger.DocumentID,
		LedgerUnknown: "the ledger names the document, but not its content",
	}[c.Ledger]
	when := "committed at " + d.State.CommittedAt
	if d.State.Status == invoice.Failed {
		when = "failed at " + d.State.FailedAt
	}
	return fmt.Sprintf("%s; the document was %s, rows: %s", has, when, c.Rows)
}

func documentDetail(d invoice.Document) string {
	switch {
	case d.State.Status == invoice.Failed:
		return "failed at " + d.State.FailedAt
	case d.State.RetryAfter > 0:
		return fmt.Sprintf("%s since %s, due at %s", d.State.Status, seconds(d.TS), seconds(d.State.RetryAfter))
	}
	return fmt.Sprintf("%s since %s", d.State.Status, seconds(d.TS))
}

func episodeDetail(e Episode) string {
	return fmt.Sprintf("evidence of %s in %s", clock(e.At), e.Folder)
}

// line is the main line in the folder's name; 0 if there is none.
func (e Episode) line() int64 {
	const prefix = "failed/"
	main, _, _ := strings.Cut(strings.TrimPrefix(e.Folder, prefix), "/")
	id, err := strconv.ParseInt(main, 10, 64)
	if err != nil {
		return 0
	}
	return id
}
