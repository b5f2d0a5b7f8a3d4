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
	// Later: it ended after Options.Before, so the database may not have its lines.
	Later Reason = "later"
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
	case Later:
		return "it ended after the time of --before: a reapply writes it"
	}
	return string(r)
}

// isEnded reports whether a document is at its end.
func isEnded(d invoice.Document) bool {
	return d.State.Status == invoice.Committed || d.State.Status == invoice.Failed
}

// lastEnd returns how a document last ended, committed or failed, and when; "" if it never did. One that was reset
// since has only its times to tell.
func lastEnd(d invoice.Document) (invoice.Status, time.Time) {
	committed, failed := timeOf(d.State.CommittedAt), timeOf(d.State.FailedAt)
	end, at := invoice.Committed, committed
	switch {
	case isEnded(d):
		if end = d.State.Status; end == invoice.Failed {
			at = failed
		}
		if at.IsZero() {
			at = time.Unix(d.TS, 0)
		}
	case committed.IsZero() && failed.IsZero():
		end = ""
	case failed.After(committed):
		end, at = invoice.Failed, failed
	}
	return end, at
}

// timeOf is a time in a document; zero if it has none that can be read.
func timeOf(stamp string) time.Time {
	us, ok := invoice.TimeOfID(stamp)
	if !ok {
		return time.Time{}
	}
	return time.UnixMicro(us)
}

// RowsOf returns the ledger rows of a document, one per line, or the reason why it has no rows; neither if it never
// ended. A document with refused values also has rows: another writer wrote it by other rules. One that was reset has
// rows of an earlier snapshot, so that the present one is written.
//
// A before that is not zero is the time of the database's copy: what ended later has no rows.
func RowsOf(d invoice.Document, now, before time.Time) ([]Row, Reason) {
	end, at := lastEnd(d)
	if end == "" {
		return nil, ""
	}
	if reason := skipReason(d, end, now); reason != "" {
		return nil, reason
	}
	if !before.IsZero() && at.After(before) {
		return nil, Later
	}
	row := Row{Version: d.Version, DocumentID: d.ID, SysName: d.SysName, SourceTS: d.TS, Outcome: Failed}
	if !isEnded(d) {
		row.SourceTS--
	}
	if end == invoice.Committed {
		row.Outcome, row.Hash, row.HashVersion = Adopted, d.Hash, d.Mapping.Version()
		if !isEnded(d) || changedSince(d) {
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
func skipReason(d invoice.Document, end invoice.Status, now time.Time) Reason {
	switch {
	case d.Main == 0:
		return NoLine
	case d.NeedsVersion:
		return NoVersion
	case d.Version.Future(now):
		return Future
	case end == invoice.Committed:
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
	at := timeOf(d.State.CommittedAt)
	return !at.IsZero() && time.Unix(d.TS, 0).Sub(at) > invoice.ClockSkew
}

// newer reports whether a is later than b in the order of results.
func newer(a, b Row) bool {
	if c := a.Version.Compare(b.Version); c != 0 {
		return c > 0
	}
	return a.SourceTS > b.SourceTS
}
