package run

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// Kind is what a run does.
type Kind string

// The kinds.
const (
	// Drain commits pending documents and due retries.
	Drain Kind = "drain"
	// Replay tries failed documents again.
	Replay Kind = "replay"
	// Reindex rewrites the lines of committed documents.
	Reindex Kind = "reindex"
	// Reapply brings committed and failed documents to a database that lacks their content. Lines that have it stay
	// untouched.
	Reapply Kind = "reapply"
)

// KindRow is what there is to know about a kind of run. A new kind is one row of Kinds.
type KindRow struct { //nolint:revive // Kind is its name
	Kind Kind
	// Meaning is one line for operators: the documents that it is about.
	Meaning string
	// Statuses are those of the documents that a run looks for. Accepts restricts them further by the document at the
	// time now; nil takes all.
	Statuses []invoice.Status
	Accepts  func(doc commit.PendingDoc, now time.Time) bool
	// OfRun tries failed documents again, and so allows Filter.Run. Unfiltered allows an empty filter without a further
	// question.
	OfRun, Unfiltered bool
	// TakeOver are the statuses from which a worker takes documents before they are due. TakeOverNamed are added for a
	// run that names documents or these statuses. Rewrite says that it writes lines that have the content already.
	TakeOver, TakeOverNamed []invoice.Status
	Rewrite                 bool
}

// KindTable is a list of kinds.
type KindTable []KindRow

// Kinds returns the kinds of this build.
func Kinds() KindTable {
	return KindTable{
		{
			Kind: Drain, Meaning: "waiting documents", Unfiltered: true,
			Statuses: []invoice.Status{invoice.Pending, invoice.RetryScheduled},
			Accepts: func(doc commit.PendingDoc, now time.Time) bool {
				return doc.Status != invoice.RetryScheduled || invoice.Due(doc.RetryAfter, now)
			},
		},
		{
			Kind: Replay, Meaning: "failed documents", OfRun: true,
			Statuses: []invoice.Status{invoice.Failed},
			TakeOver: []invoice.Status{invoice.Failed}, TakeOverNamed: []invoice.Status{invoice.RetryScheduled},
		},
		{
			Kind: Reindex, Meaning: "writes committed documents again", Rewrite: true,
			Statuses: []invoice.Status{invoice.Committed}, TakeOver: []invoice.Status{invoice.Committed},
		},
		{
			Kind: Reapply, Meaning: "committed and failed documents whose content the database lacks", OfRun: true,
			Statuses: []invoice.Status{invoice.Committed, invoice.Failed},
			TakeOver: []invoice.Status{invoice.Committed, invoice.Failed},
		},
	}
}

// Find returns the row of a kind.
func (t KindTable) Find(kind Kind) (KindRow, bool) {
	i := slices.IndexFunc(t, func(k KindRow) bool { return k.Kind == kind })
	if i < 0 {
		return KindRow{}, false
	}
	return t[i], true
}

// OfRun returns the first row that tries failed documents again; the zero row if there is none.
func (t KindTable) OfRun() (row KindRow) {
	if i := slices.IndexFunc(t, func(k KindRow) bool { return k.OfRun }); i >= 0 {
		row = t[i]
	}
	return row
}

// Rewriting returns the kind that writes lines again, for the timer that mends; the zero row if there is none.
func (t KindTable) Rewriting() KindRow { row, _ := t.Find(Reindex); return row }

// Reapplying returns the kind that writes what a database lacks; the zero row if there is none.
func (t KindTable) Reapplying() KindRow { row, _ := t.Find(Reapply); return row }

// String lists the kinds in words.
func (t KindTable) String() string {
	names := make([]string, len(t))
	for i, k := range t {
		names[i] = string(k.Kind)
	}
	if len(names) < 2 { //nolint:mnd // one name needs no "or"
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// kindOf returns the row of a run's kind. The database lists no kinds, so a newer build may have started the run.
func (b base) kindOf(r Run) (KindRow, error) {
	kind, known := b.o.Kinds.Find(r.Kind)
	if !known {
		return kind,
			fault.New(fault.Internal, "run: kind", "run_kind", "expected %s, found %q", b.o.Kinds,
				fault.Truncate(string(r.Kind), fault.MaxForeign))
	}
	return kind, nil
}

// query translates the filter for the container.
func (k KindRow) query(f Filter, sysName string, began time.Time) commit.Query {
	q := commit.Query{
		SysName: sysName, Statuses: f.Statuses, To: began.Add(invoice.ClockSkew).Unix(),
		Members: commit.PendingMembers(), Size: commit.MaxPage,
	}
	if len(f.Statuses) == 0 {
		q.Statuses = k.Statuses
	}
	if !f.From.IsZero() {
		q.From = max(0, f.From.Unix())
	}
	if !f.To.IsZero() {
		q.To = f.To.Unix()
	}
	return q
}

// takes reports whether the run takes a document that the query found.
func (k KindRow) takes(f Filter, doc commit.PendingDoc, now time.Time) bool {
	if (f.ErrorKind != "" && f.ErrorKind != doc.Kind) || (f.Code != "" && !strings.EqualFold(f.Code, doc.Code)) {
		return false
	}
	return k.Accepts == nil || k.Accepts(doc, now)
}

// Selectable are the statuses that Filter.Statuses may name.
func (k KindRow) Selectable() []invoice.Status { return slices.Concat(k.Statuses, k.TakeOverNamed) }

// takeOver returns from which statuses a run takes documents before they are due. A named document is tried at once. A
// replay that searches leaves scheduled retries to their time, unless it asks for this status.
func (k KindRow) takeOver(named bool, asked []invoice.Status) []invoice.Status {
	statuses := slices.Clone(k.TakeOver)
	for _, s := range k.TakeOverNamed {
		if named || slices.Contains(asked, s) {
			statuses = append(statuses, s)
		}
	}
	return statuses
}

// Leaves returns the reason why a run that names the document leaves it alone; empty when it takes it.
func (k KindRow) Leaves(doc invoice.Document, f Filter, sysName string, now time.Time) string {
	why := doc.Eligibility(now, sysName)
	batch := commit.Delivery{Purpose: commit.ForRun, TakeOver: k.TakeOver, Overwrite: f.OverwriteEdits}
	_, alone := batch.LeavesAlone(doc)
	switch {
	case why == invoice.NotOurs:
		return fmt.Sprintf("it belongs to the environment %q", doc.SysName)
	case alone != "":
		return alone
	case why == invoice.Eligible || slices.Contains(k.takeOver(true, nil), doc.State.Status):
		return ""
	case why == invoice.NotDue:
		return "it waits for a retry"
	case why == invoice.NotOffered:
		return "it was never offered"
	}
	return "it is " + doc.State.StatusFound
}

// Preview calls each for the documents that a run would take, until it returns false. It changes nothing. Errors as
// commit.Finder.
func (k KindRow) Preview(
	ctx context.Context, finder commit.Finder, sysName string, f Filter, now time.Time,
	each func(commit.PendingDoc) bool,
) error {
	return commit.Each(ctx, finder, k.query(f, sysName, now), func(page commit.Page) (more bool, err error) {
		docs, err := commit.PendingDocs(page.Documents)
		if err != nil {
			return false, err
		}
		for _, doc := range docs {
			if k.takes(f, doc, now) && !each(doc) {
				return false, nil
			}
		}
		return true, nil
	})
}
