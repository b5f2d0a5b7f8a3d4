package adopt

import (
	"time"

	"sqlwriter/internal/invoice"
)

// Reason says why a finished document has no ledger rows.
type Reason string

// The reasons.
const (
	// NoID: it cannot be identified.
	NoID Reason = "no_id"
	// NoLine: its main line is not readable, so the written lines are unknown.
	NoLine Reason = "no_line"
	// NoVersion: neither its id nor sql_writer.version has a time, so it cannot be ordered.
	NoVersion Reason = "no_version"
	// Future: its time is in the future and would win against every later result (docs/requirements.md R15).
	Future Reason = "future"
	// MarkNotMade: it failed, and sql_writer.final_error says that its lines have no failure mark.
	MarkNotMade Reason = "mark_not_made"
	// FailedHere: this product failed it; the ledger already has its failure mark, if any.
	FailedHere Reason = "failed_here"
)

// Meaning returns the reason in words.
func (r Reason) Meaning() string {
	switch r {
	case NoID:
		return "it has no id that can be read"
	case NoLine:
		return "its main line cannot be read"
	case NoVersion:
		return "neither its id nor sql_writer.version has a time"
	case Future:
		return "its time is more than an hour in the future"
	case MarkNotMade:
		return "it failed and its lines were not marked (sql_writer.final_error): review them by hand"
	case FailedHere:
		return "this product failed it, so it needs no adoption"
	}
	return string(r)
}

// finished reports whether a document is at its end.
func finished(d invoice.Document) bool {
	return d.State.Present && (d.State.Status == invoice.Committed || d.State.Status == invoice.Failed)
}

// finishedAt is the time in a finished document, or its _ts.
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

// RowsOf returns the ledger rows of a finished document, one per line, or the reason why it has no rows. A document
// with refused values also has rows: another writer wrote it by other rules.
func RowsOf(d invoice.Document, now time.Time) ([]Row, Reason) {
	if reason := skipReason(d, now); reason != "" {
		return nil, reason
	}
	row := Row{Version: d.Version, DocumentID: d.ID, SysName: d.SysName, SourceTS: d.TS, Outcome: Failed}
	if d.State.Status == invoice.Committed {
		row.Outcome, row.Hash, row.HashVersion = Adopted, d.Hash, invoice.HashVersion
		if changedSince(d) {
			row.HashVersion = Unproven
		}
	}
	rows := make([]Row, 0, 1+len(d.Duplicates))
	for _, line := range append([]int64{d.Main}, d.Duplicates...) {
		row.Line = line
		rows = append(rows, row)
	}
	return rows, ""
}

// skipReason returns the reason why a document has no rows; empty if it has.
func skipReason(d invoice.Document, now time.Time) Reason {
	switch {
	case d.Main == 0:
		return NoLine
	case d.NeedsVersion:
		return NoVersion
	case d.Version.Future(now):
		return Future
	case d.State.Status == invoice.Committed:
		return ""
	case d.State.LastErrorKind != "": // other writers write no kinds
		return FailedHere
	case d.State.FinalError != "":
		return MarkNotMade
	}
	return ""
}

// changedSince reports whether a document changed after its commit, so that its lines may have other content.
func changedSince(d invoice.Document) bool {
	us, ok := invoice.TimeOfID(d.State.CommittedAt)
	return ok && time.Unix(d.TS, 0).Sub(time.UnixMicro(us)) > invoice.ClockSkew
}

// newer reports whether a is later than b in the order of results.
func newer(a, b Row) bool {
	if c := a.Version.Compare(b.Version); c != 0 {
		return c > 0
	}
	return a.SourceTS > b.SourceTS
}
