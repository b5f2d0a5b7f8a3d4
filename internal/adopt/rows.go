package adopt

import (
	"time"

	"sqlwriter/internal/invoice"
)

// Reason says why a finished document says nothing for the ledger.
type Reason string

// The reasons.
const (
	// NoID: nobody can say which document it is.
	NoID Reason = "no_id"
	// NoLine: its main line cannot be read, so it is not known what was written.
	NoLine Reason = "no_line"
	// NoVersion: neither its id nor sql_writer.version has a time, so it cannot be compared with others.
	NoVersion Reason = "no_version"
	// Future: its time lies in the future and would win against every later result (docs/requirements.md R15).
	Future Reason = "future"
	// MarkNotMade: it failed, and sql_writer.final_error says that its lines were not marked.
	MarkNotMade Reason = "mark_not_made"
	// FailedHere: it was failed by this product, whose mark, if there is one, is in the ledger already.
	FailedHere Reason = "failed_here"
)

// Meaning says a reason in words.
func (r Reason) Meaning() string {
	switch r {
	case NoID:
		return "it has no id that can be read"
	case NoLine:
		return "its main line cannot be read"
	case NoVersion:
		return "neither its id nor sql_writer.version has a time"
	case Future:
		return "its time lies more than an hour in the future"
	case MarkNotMade:
		return "it failed and its lines were not marked (sql_writer.final_error): review them by hand"
	case FailedHere:
		return "it was failed by this product, which has no need to adopt it"
	}
	return string(r)
}

// finished reports whether a document is at its end.
func finished(d invoice.Document) bool {
	return d.State.Present && (d.State.Status == invoice.Committed || d.State.Status == invoice.Failed)
}

// finishedAt is when a finished document says that it was, or when it was last touched.
func finishedAt(d invoice.Document) time.Time {
	stamp := d.State.CommittedAt
	if d.State.Status == invoice.Failed {
		stamp = d.State.FailedAt
	}
	if us, ok := invoice.TimeOfID(stamp); ok {
		return time.UnixMicro(us)
	}
	return time.Unix(d.TS, 0)
}

// RowsOf is what a finished document says for the ledger: a row for each of its lines, or the reason why there is none.
// A document whose values our rules refuse has rows all the same: it was written, by other rules.
func RowsOf(d invoice.Document, now time.Time) ([]Row, Reason) {
	if reason := silent(d, now); reason != "" {
		return nil, reason
	}
	row := Row{Version: d.Version, DocumentID: d.ID, SourceTS: d.TS, Outcome: Failed}
	certain := false
	if d.State.Status == invoice.Committed {
		row.Outcome, row.Hash, row.HashVersion = Adopted, d.Hash, invoice.HashVersion
		certain = d.Problem == nil
		if changedSince(d) {
			row.HashVersion, certain = Unproven, false
		}
	}
	rows := make([]Row, 0, 1+len(d.Duplicates))
	for _, line := range append([]int64{d.Main}, d.Duplicates...) {
		row.Line = line
		if certain {
			row.RowHash = invoice.RowHash(d.Values, d.Main, line)
		}
		rows = append(rows, row)
	}
	return rows, ""
}

// silent is the reason why a document says nothing.
func silent(d invoice.Document, now time.Time) Reason {
	switch {
	case d.Main == 0:
		return NoLine
	case d.NeedsVersion:
		return NoVersion
	case d.Version.Future(now):
		return Future
	case d.State.Status == invoice.Committed:
		return ""
	case d.State.LastErrorKind != "": // no other writer knows kinds
		return FailedHere
	case d.State.FinalError != "":
		return MarkNotMade
	}
	return ""
}

// changedSince reports whether a document was touched after it was committed. committed_at is by its writer's clock, _ts by the
// container's. What it says now is then not known to be
// what was written.
func changedSince(d invoice.Document) bool {
	us, ok := invoice.TimeOfID(d.State.CommittedAt)
	return ok && time.Unix(d.TS, 0).Sub(time.UnixMicro(us)) > invoice.ClockSkew
}

// newer reports whether a row comes later in the order of results.
func newer(a, b Row) bool {
	if c := a.Version.Compare(b.Version); c != 0 {
		return c > 0
	}
	return a.SourceTS > b.SourceTS
}
